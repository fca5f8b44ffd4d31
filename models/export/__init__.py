"""Turns official checkpoints into bundles: python -m models.export FAMILY ...

Every family has a room with its command line, what its manifest says and how its files are read:
chameleon (also Anole and Lumina-mGPT), emu3, glm_image, janus, llamagen, lumina2, mar, simplear, tar. They stand
on

    drafters        drafters for bundles that are there
    image_decoders  image decoders that no family has for itself

and all of these on the modules beside this one:

    checkpoint.py       reads checkpoints; it offers what these have, each with its rules:
        weight_file.py    one file of weights
        shards.py         a Hugging Face folder
        names.py          containers, averaged weights, prefixes of names
        tensors.py        which tensors can be exported, strict loading
        json_file.py      JSON, strictly
    config_file.py      what a configuration says, the same for all families and drafters
    tokenizer_file.py   the pieces of a tokenizer.json
    qwen_tokenizer.py   a tokenizer.json of other files
    messages.py         errors and notes in one line
    program.py          the families' commands and their options
    command.py          how commands end
    common.py           options, entries and recorded calls that families share
    decoder_weights.py  a decoder's tensors, whatever they are called
    mapped_target.py    targets of any size, whose weights lie in files (mapped.py)
    settings.py         what --config may say
    progress.py         how far a long export is
"""
