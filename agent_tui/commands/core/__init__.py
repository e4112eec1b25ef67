"""What commands are made of: parser, registry, the `Front` they talk to."""
