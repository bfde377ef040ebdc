"""Print the tables of simulated runs that docs/statistics.md shows between its markers.

python bench/power.py
"""

from proctor.core.reports.power_table import measure_growing, measure_sizes, measure_small, render_tables

print(render_tables(measure_sizes(), measure_growing(), measure_small()))
