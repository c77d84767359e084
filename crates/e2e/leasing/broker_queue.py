"""Says how many messages a queue has, or deletes it.

broker_queue.py HOST:PORT count|delete QUEUE
"""

import sys

import amqp

address, action, queue = sys.argv[1:]
with amqp.Connection(address) as connection:
    channel = connection.channel()
    if action == "delete":
        print(channel.queue_delete(queue))
    else:
        print(channel.queue_declare(queue, passive=True).message_count)
