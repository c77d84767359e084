"""A compute driver for Nova: hosts as small as those of its MediumFakeDriver, whose live migrations take five seconds and can
be aborted, as those of its FakeLiveMigrateDriver."""

from nova.virt import fake


class SlowFakeDriver(fake.MediumFakeDriver, fake.FakeLiveMigrateDriver):
    """Both."""
