"""Reads notifications as OpenStack's services do, and prints each as a line of JSON.

listen.py TRANSPORT_URL TOPIC
"""

import json
import sys

import oslo_messaging
from oslo_config import cfg


class Endpoint:
    def info(self, context, publisher_id, event_type, payload, metadata):
        told = {"publisher_id": publisher_id, "event_type": event_type, "payload": payload, **metadata}
        print(json.dumps(told), flush=True)


conf = cfg.ConfigOpts()
conf([])
transport = oslo_messaging.get_notification_transport(conf, url=sys.argv[1])
targets = [oslo_messaging.Target(topic=sys.argv[2])]
listener = oslo_messaging.get_notification_listener(transport, targets, [Endpoint()], executor="threading")
listener.start()
listener.wait()
