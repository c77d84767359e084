"""Publishes a notification as Nova does.

notify.py TRANSPORT_URL TOPIC EVENT_TYPE HOST
"""

import sys

import oslo_messaging
from oslo_config import cfg

url, topic, event_type, host = sys.argv[1:]
conf = cfg.ConfigOpts()
conf([])
oslo_messaging.set_transport_defaults("nova")
transport = oslo_messaging.get_notification_transport(conf, url=url)
notifier = oslo_messaging.Notifier(
    transport, driver="messagingv2", topics=[topic], publisher_id=f"nova-compute:{host}"
)
data = {"host": host, "binary": "nova-compute", "disabled": False, "forced_down": False}
notifier.info({}, event_type, {
    "nova_object.data": data, "nova_object.name": "ServiceStatusPayload", "nova_object.namespace": "nova",
    "nova_object.version": "1.1",
})
transport.cleanup()
