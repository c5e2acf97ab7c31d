"""Processes the products of a DAG run that earshot started: one task per product."""
from airflow.sdk import dag, get_current_context, task


@dag(schedule=None, catchup=False, max_active_runs=16)
def earshot_product():
    @task
    def documents():
        return get_current_context()["dag_run"].conf["documents"]

    @task(retries=2)
    def process(document):
        print(document["event"], document["productName"], document["S3Path"])

    process.expand(document=documents())


earshot_product()
