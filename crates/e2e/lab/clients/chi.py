"""Creates, finds and deletes leases with python-chi, and prints the results as JSON. Arguments: Keystone's address,
user, password, project, the name of a machine.
"""

import json
import sys
import time

from blazarclient import client as blazar_client
from keystoneauth1 import session
from keystoneauth1.identity import v3

from chi import lease

url, user, password, project, machine = sys.argv[1:]
auth = v3.Password(url, username=user, password=password, project_name=project,
                   user_domain_id="default", project_domain_id="default")
stock = blazar_client.Client(session=session.Session(auth=auth), service_type="reservation")
# In the place of the session that it would make of the environment of a notebook.
lease.blazar = lambda: stock

seen = {}
host = stock.host.create(machine, gpu="yes")
reservations = []
lease.add_node_reservation(reservations, count=1, resource_properties=["==", "$gpu", "yes"])
start, end = lease.lease_duration(days=0, hours=2)
made = lease.create_lease("from chi", reservations, start_date=start, end_date=end)
# Its own wait_for_active does not know its own leases.
for _ in range(60):
    seen["active"] = lease.get_lease(made["id"]).status
    if seen["active"] == "ACTIVE":
        break
    time.sleep(1)
seen["id"] = lease.get_lease_id("from chi") == made["id"]
one = lease.get_lease("from chi")
seen["lease"] = [one.name, one.status, len(one.node_reservations), [event["event_type"] for event in one.events]]
seen["leases"] = [other.name for other in lease.list_leases()]
lease.delete_lease(made["id"])
seen["left"] = [other.name for other in lease.list_leases()]
json.dump(seen, sys.stdout)
