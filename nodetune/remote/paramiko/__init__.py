"""SSH by paramiko: all hosts in one process."""
