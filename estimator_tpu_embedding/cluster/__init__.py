"""Workers: processes on this or other machines that are the hosts of a job."""
