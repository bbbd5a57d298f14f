"""What the agent shows: status socket, metrics, logs, service notifications."""
