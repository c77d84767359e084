"""The interface of a Tempest plugin: tests, options and clients."""

import os

from tempest import config as tempest_config
from tempest.test_discover import plugins

from allot_tempest_plugin import config


class AllotTempestPlugin(plugins.TempestPlugin):
    """Registers this package with Tempest."""

    def load_tests(self):
        package = os.path.dirname(os.path.abspath(__file__))
        return os.path.join(package, "scenario"), os.path.dirname(package)

    def register_opts(self, conf):
        conf.register_opt(config.SERVICE, group="service_available")
        conf.register_group(config.GROUP)
        conf.register_opts(config.OPTIONS, group=config.GROUP)

    def get_opt_lists(self):
        return [("service_available", [config.SERVICE]), (config.GROUP.name, config.OPTIONS)]

    def get_service_clients(self):
        parameters = tempest_config.service_client_config("allot")
        return [{
            "name": "allot",
            "service_version": "allot.v1",
            "module_path": "allot_tempest_plugin.client",
            "client_names": ["ReservationClient"],
            **parameters,
        }]
