"""The demo's vocabulary: the attributes of its images, their values, and the words for them.

Everything else is read from here: the columns of the data set, the captions, what a caption names.
"""

from __future__ import annotations

from typing import Any

SUBJECT_WORDS: dict[str, tuple[str, ...]] = {
    "lighthouse": ("lighthouse", "lighthouse", "light house", "tower with a light"),
    "sailboat": ("sailboat", "sail boat", "boat", "yacht", "sailing boat"),
    "house": ("house", "cottage", "cabin", "small house"),
    "windmill": ("windmill", "windmill", "wind mill", "old mill"),
    "tent": ("tent", "tent", "camping tent"),
    "tree": ("tree", "tree", "big tree"),
    "balloon": ("balloon", "hot air balloon", "hot-air balloon"),
    "castle": ("castle", "castle", "old castle"),
    "car": ("car", "car", "small car", "automobile"),
    "mushroom": ("mushroom", "mushroom", "giant mushroom", "toadstool"),
}
COLOUR_WORDS: dict[str, tuple[str, ...]] = {
    "red": ("red", "red", "crimson"),
    "orange": ("orange",),
    "yellow": ("yellow", "yellow", "golden"),
    "green": ("green",),
    "blue": ("blue",),
    "purple": ("purple", "purple", "violet"),
    "pink": ("pink",),
    "white": ("white",),
}
TIME_PHRASES: dict[str, tuple[str, ...]] = {
    "dawn": ("at dawn", "at sunrise", "in the morning", "in the early morning", "in morning light"),
    "day": ("at noon", "by day", "on a sunny day", "under a blue sky", "in daylight"),
    "dusk": ("at dusk", "at sunset", "in the evening", "in evening light", "under a red sky"),
    "night": ("at night", "by night", "under the stars", "in the moonlight", "under a starry sky"),
    "storm": (
        "in a storm",
        "under stormy skies",
        "in stormy weather",
        "during a storm",
        "under dark clouds",
    ),
}
TIME_TAGS: dict[str, tuple[str, ...]] = {
    "dawn": ("dawn", "sunrise", "morning"),
    "day": ("day", "noon", "sunny", "daylight", "sunny day", "blue sky"),
    "dusk": ("dusk", "sunset", "evening"),
    "night": ("night", "starry night", "moonlight"),
    "storm": ("storm", "stormy", "stormy sky", "thunderstorm"),
}
GROUND_PHRASES: dict[str, tuple[str, ...]] = {
    "meadow": (
        "on a meadow",
        "in a green field",
        "on the grass",
        "in a meadow",
        "in summer",
    ),
    "sea": ("on the sea", "on the ocean", "at sea", "on the water", "on the waves"),
    "desert": ("in the desert", "on the sand", "in the dunes", "among sand dunes"),
    "snow": ("in the snow", "on the snow", "in winter", "on a snowy field"),
    "autumn": ("in an autumn field", "in autumn", "on an autumn meadow", "in the fall"),
    "lavender": (
        "in a lavender field",
        "in the lavender",
        "among lavender",
        "in a field of lavender",
    ),
    "tulips": (
        "in spring",
        "among tulips",
        "in a tulip field",
        "in a field of tulips",
        "in a spring field",
    ),
}
COAST_PHRASES = (
    "on the coast",
    "on the shore",
    "by the sea",
    "by the ocean",
    "on a rock in the sea",
)
OVER_PHRASES: dict[str, tuple[str, ...]] = {
    "meadow": ("over a meadow", "over a green field", "above the grass"),
    "sea": ("over the sea", "over the ocean", "above the water", "over the coast"),
    "desert": ("over a desert", "over the desert", "above the dunes", "over the sand"),
    "snow": ("over the snow", "above a snowy field", "over a winter landscape"),
    "autumn": ("over an autumn field", "over an autumn landscape", "above autumn meadows"),
    "lavender": ("over a lavender field", "above the lavender", "over lavender"),
    "tulips": ("over a tulip field", "above the tulips", "over a spring landscape"),
}
BACKGROUND_PHRASES: dict[str, tuple[str, ...]] = {
    "none": (),
    "mountains": (
        "in front of mountains",
        "with mountains behind",
        "with mountains in the background",
        "below tall mountains",
    ),
    "hills": (
        "in front of hills",
        "with hills behind",
        "with hills in the background",
        "below green hills",
    ),
    "forest": (
        "in front of a forest",
        "with a forest behind",
        "with trees in the background",
        "by the woods",
    ),
}
SIDE_PHRASES: dict[str, tuple[str, ...]] = {
    "left": ("on the left", "to the left", "at the left side"),
    "centre": ("in the centre", "in the middle", "in the center"),
    "right": ("on the right", "to the right", "at the right side"),
}
WEATHER_PHRASES: dict[str, tuple[str, ...]] = {
    "fair": (),
    "clouds": ("under a cloudy sky", "in cloudy weather", "with many clouds"),
    "rain": ("in the rain", "in rainy weather", "while it rains"),
    "snowfall": ("in falling snow", "while it snows", "in a snowfall"),
    "mist": ("in the mist", "in the fog", "in foggy weather"),
    "rainbow": ("with a rainbow", "under a rainbow", "below a rainbow"),
}
NONE = "none"
OPENINGS = ("", "", "", "", "a picture of ", "a photo of ", "a painting of ", "a view of ")
JOINTS = ("and", "and", "and", "beside", "next to")
OTHER_WORDS = sorted({"a", "an", "the", *" ".join((*OPENINGS, *JOINTS)).split()})
EXAMPLE = "a white lighthouse on the coast at dusk"

#: Words for every attribute's values, in the order of the attribute columns of the data set. A second
#: subject, if there is one, stands on the other side.
VOCABULARY: dict[str, dict[str, tuple[str, ...]]] = {
    "subject": SUBJECT_WORDS,
    "colour": COLOUR_WORDS,
    "time": TIME_PHRASES,
    "ground": GROUND_PHRASES,
    "background": BACKGROUND_PHRASES,
    "side": SIDE_PHRASES,
    "weather": WEATHER_PHRASES,
    "second": {NONE: (), **SUBJECT_WORDS},
    "second_colour": {NONE: (), **COLOUR_WORDS},
}

#: Name of each attribute and its values.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    name: tuple(values) for name, values in VOCABULARY.items()
}
SUBJECTS, COLOURS, TIMES = (ATTRIBUTES[name] for name in ("subject", "colour", "time"))
GROUNDS, BACKGROUNDS, SIDES = (ATTRIBUTES[name] for name in ("ground", "background", "side"))
WEATHERS = ATTRIBUTES["weather"]


def known() -> dict[str, Any]:
    """The same for a bundle's manifest (`prompt.vocabulary`): what its images show when captions ask for it.

    A second subject's words are the first one's. Sides are left out: training captions name them, but half
    of the images show another one.
    """
    more = {
        "time": TIME_TAGS,
        "ground": {**OVER_PHRASES, "sea": COAST_PHRASES + OVER_PHRASES["sea"]},
    }
    kinds = {
        name: {
            value: list(dict.fromkeys(words + more.get(name, {}).get(value, ())))
            for value, words in values.items()
        }
        for name, values in VOCABULARY.items()
        if name != "side" and not name.startswith("second")
    }
    return {"kinds": kinds, "subject": "subject", "other": OTHER_WORDS, "example": EXAMPLE}
