"""Map of last week's scenes with little cloud over an area, read from the STAC API of earshot."""
import os
import sys
from datetime import datetime, timedelta, timezone

import geopandas
import matplotlib
import requests

matplotlib.use("Agg")  # writes a file, needs no screen
ROOT = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080/stac"
AREA = {"type": "Polygon", "coordinates": [[[5.5, 45], [11, 45], [11, 48], [5.5, 48], [5.5, 45]]]}
SINCE = datetime.now(timezone.utc) - timedelta(days=7)
SEARCH = {
    "intersects": AREA,
    "datetime": f"{SINCE:%Y-%m-%dT%H:%M:%SZ}/..",
    "filter": {"op": "<", "args": [{"property": "eo:cloud_cover"}, 20]},
    "limit": 500,
}
PASSWORD = os.environ.get("EARSHOT_CONSOLE_PASSWORD")
items, page = [], {"href": f"{ROOT}/search", "body": SEARCH}
while page:
    auth = ("earshot", PASSWORD) if PASSWORD else None
    answer = requests.post(page["href"], json=page["body"], auth=auth, timeout=60)
    answer.raise_for_status()
    items += answer.json()["features"]
    page = next((one for one in answer.json()["links"] if one["rel"] == "next"), None)
if not items:
    sys.exit("No scene matches: use a larger area, more cloud or a longer time.")
scenes = geopandas.GeoDataFrame.from_features(items, crs="EPSG:4326")
print(scenes[["datetime", "platform", "grid:code", "eo:cloud_cover"]].to_string(index=False))
axes = scenes.plot(column="eo:cloud_cover", legend=True, alpha=0.4, edgecolor="black")
frame = geopandas.GeoDataFrame.from_features([{"geometry": AREA, "properties": {}}])
frame.boundary.plot(ax=axes, color="red")
axes.set_title(f"{len(scenes)} scenes with less than 20 % cloud since {SINCE:%Y-%m-%d}")
axes.figure.savefig("cloud-free.png", dpi=120)
