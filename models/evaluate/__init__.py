"""Quality of drawn pictures: the field's metrics on folders of `lamplighter batch`."""
