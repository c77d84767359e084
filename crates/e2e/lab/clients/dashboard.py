"""Calls every function of the dashboard's api module, and prints the results as JSON. Arguments: Keystone's address,
user, password, project, the name of a machine.
"""

import json
import os
import sys

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "openstack_dashboard.test.settings"
django.setup()

from blazar_dashboard.api import client as api  # noqa: E402
from blazarclient import client as blazar_client  # noqa: E402
from keystoneauth1 import session  # noqa: E402
from keystoneauth1.identity import v3  # noqa: E402

url, user, password, project, machine = sys.argv[1:]
auth = v3.Password(url, username=user, password=password, project_name=project,
                   user_domain_id="default", project_domain_id="default")
stock = blazar_client.Client(session=session.Session(auth=auth))
# The module would take token and catalog from a browser's request. Use this client instead.
api.blazarclient = lambda request: stock

seen = {}
host = api.host_create(None, machine, gpu="yes")
seen["created"] = host.hypervisor_hostname
api.host_update(None, host.id, {"rack": "r1"})
host = api.host_get(None, host.id)
seen["capabilities"] = [host.gpu, host.rack, host.reservable, host.cpu_info_dict()]
reservation = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "",
               "resource_properties": ""}
lease = api.lease_create(None, "from the dashboard", "2040-01-01 09:00", "2040-01-02 09:00", [reservation], [])
own = lambda: [one.name for one in api.lease_list(None) if one.id == lease.id]  # administrators see all
seen["leases"] = own()
lease = api.lease_update(None, lease.id, name="renamed", prolong_for="1h")
lease = api.lease_get(None, lease.id)
seen["lease"] = [lease.name, lease.status, lease.degraded, lease.end_date]
hosts, reservations = api.reservation_calendar(None)
seen["calendar"] = [[one["hypervisor_hostname"] for one in hosts],
                    [[one["start_date"].isoformat(), one["end_date"].isoformat()] for one in reservations]]
seen["allocations"] = [one.resource_id == host.id for one in api.host_allocations_list(None)]
api.lease_delete(None, lease.id)
seen["left"] = len(own())
api.host_delete(None, host.id)
seen["hosts"] = [one.hypervisor_hostname for one in api.host_list(None)]
json.dump(seen, sys.stdout)
