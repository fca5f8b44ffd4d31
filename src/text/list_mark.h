#pragma once

#include <cstddef>
#include <string_view>

namespace lamplighter {

// The mark of a list's item in front of a text: "- a cat", "* a cat", "3. a cat", "(b) a cat".
struct ListMark {
  char kind =
      0;  // '-', '*', '+' and '>' as written, 'o' for a bullet, '1' for numbers, 'a' for letters; 0: none
  char end = 0;            // of numbers and letters: what stands behind them
  std::size_t number = 0;  // of numbers and letters: the place in the list
  std::size_t size = 0;    // bytes before the text
};
ListMark find_list_mark(std::string_view line);

// Whether an item with the mark `next` can follow one with `mark` in a list.
bool continues_list(const ListMark& mark, const ListMark& next);

}  // namespace lamplighter
