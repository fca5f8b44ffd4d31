"""Quality of generated images: the field's metrics on folders of `lamplighter batch`."""
