"""The parts of commands: parser, registry, and the `Front` they talk to."""
