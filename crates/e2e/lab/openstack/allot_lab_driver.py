"""A compute driver for Nova. Hosts are as small as with Nova's MediumFakeDriver. Live migrations take five seconds and
can be aborted, as with Nova's FakeLiveMigrateDriver.
"""

from nova.virt import fake


class SlowFakeDriver(fake.MediumFakeDriver, fake.FakeLiveMigrateDriver):
    """Both."""
