"""The scenarios, which Tempest finds here."""
