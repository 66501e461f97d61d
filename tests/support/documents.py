"""Documents that nodetune prints, compared with their published schemas."""

import json

import jsonschema

from nodetune.foundation import paths


def valid(name, text):
    """The document, once it has passed its schema."""
    told = json.loads(text)
    jsonschema.validate(told, json.loads(paths.bundled("data/schemas").joinpath(f"{name}.json").read_text()))
    return told


def valid_by_its_own_word(text):
    """The same for a document that says which schema it keeps to."""
    return valid(json.loads(text)["schema"].removeprefix("nodetune.").partition("/")[0], text)
