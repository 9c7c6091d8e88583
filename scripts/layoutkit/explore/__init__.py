"""Run many layout jobs on this machine or on a cluster."""
