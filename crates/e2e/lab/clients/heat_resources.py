"""Creates, reads and deletes a lease with Heat's resource OS::Blazar::Lease, and prints the results as JSON.
Arguments: Keystone's address, user, password, project, the name of a machine.
"""

import datetime
import json
import os
import sys
import time

import heat

# Heat's settings are installed outside its package, but its tests look for them inside.
place = os.path.join(os.path.dirname(os.path.dirname(heat.__file__)), "etc")
if not os.path.exists(place):
    os.symlink(os.path.join(sys.prefix, "etc"), place)

from heat.tests import common, utils  # first, since it chooses how Heat waits

from blazarclient import client as blazar_client
from keystoneauth1 import session
from keystoneauth1.identity import v3

from heat.common import exception, template_format
from heat.engine import scheduler
from heat.engine.clients.os import blazar
from heat.engine.resources.openstack.blazar import host, lease

TEMPLATE = """
heat_template_version: rocky
resources:
  machine:
    type: OS::Blazar::Host
    properties:
      name: %(machine)s
      extra_capability: {gpu: "yes"}
  reserved:
    type: OS::Blazar::Lease
    properties:
      name: from heat
      start_date: '%(start)s'
      end_date: '%(end)s'
      reservations:
        - {resource_type: 'physical:host', min: 1, max: 1, hypervisor_properties: '[">=", "$vcpus", "2"]',
           resource_properties: '["==", "$gpu", "yes"]'}
      events:
        - {event_type: 'lease_type:best-effort', time: '%(timeout)s'}
  room:
    type: OS::Blazar::Lease
    properties:
      name: room from heat
      start_date: '2041-01-01 09:00'
      end_date: '2041-01-10 17:30'
      reservations:
        - {resource_type: 'virtual:instance', amount: 1, vcpus: 1, memory_mb: 512, disk_gb: 15, affinity: false,
           resource_properties: ''}
"""


def days(machine):
    """The values of the template."""
    now = datetime.datetime.now(datetime.timezone.utc)
    after = lambda hours: (now + datetime.timedelta(hours=hours)).strftime("%Y-%m-%d %H:%M")
    return {"machine": machine, "start": after(24), "end": after(48), "timeout": after(27)}


class Run(common.HeatTestCase):
    """Heat's own environment for tests: a database in memory, and stacks that are parsed."""

    def runTest(self):
        url, user, password, project, machine = ARGUMENTS
        auth = v3.Password(url, username=user, password=password, project_name=project,
                           user_domain_id="default", project_domain_id="default")
        client = blazar_client.Client(session=session.Session(auth=auth), service_type="reservation")
        self.patchobject(blazar.BlazarClientPlugin, "client", return_value=client)
        stack = utils.parse_stack(template_format.parse(TEMPLATE % days(machine)))
        definitions = stack.t.resource_definitions(stack)
        made = host.Host("machine", definitions["machine"], stack)
        made.validate()
        scheduler.TaskRunner(made.create)()
        SEEN["host"] = [made.state[1], made._resolve_attribute("hypervisor_hostname")]
        for name in ("reserved", "room"):
            resource = lease.Lease(name, definitions[name], stack)
            resource.validate()
            scheduler.TaskRunner(resource.create)()
            read = {field: resource._resolve_attribute(field) for field in resource.attributes_schema if field != "show"}
            SEEN[name] = [resource.state[1], resource.resource_id, read]
            scheduler.TaskRunner(resource.delete)()
            SEEN[name].append(resource.state[1])
        # Retry until the service has its host again.
        for _ in range(60):
            try:
                scheduler.TaskRunner(made.delete)()
                break
            except exception.ResourceFailure:
                time.sleep(1)
        SEEN["host"].append(made.state[1])


ARGUMENTS = sys.argv[1:]
SEEN = {}
run = Run()
result = run.run()
if not result.wasSuccessful():
    sys.exit("\n".join(text for _, text in result.errors + result.failures))
json.dump(SEEN, sys.stdout)
