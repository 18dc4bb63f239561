"""Star imports of libraries and of a package that nobody has."""
# run: etpe run --tf1
# stops: helpers_of_nobody
from helpers_of_nobody import *  # expect: E111 helpers_of_nobody; W202
from numpy import *
from tensorflow import *

x = placeholder(float32, [])  # expect: I302 tensorflow.placeholder
y = add_of_nobody(x)  # expect: E101 tensorflow.add_of_nobody
print('reached the last line')
