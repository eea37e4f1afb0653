"""The administrator's error. Errors of requests are `trimtab.model.status.StatusError`s."""


class ConfigurationError(ValueError):
    """A configuration, rules or values file is invalid. The message contains file, field and reason."""
