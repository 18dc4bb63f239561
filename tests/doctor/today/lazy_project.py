"""A program over a package that imports lazily, with one folder that is a namespace."""
import plugins
from plugins.readers import csv

print(plugins.table.Table().rows(), csv.Reader.rows, plugins.readers.csv.Reader().rows)
print('reached the last line')
