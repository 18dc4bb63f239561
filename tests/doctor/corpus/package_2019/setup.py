"""Installs the package."""
from setuptools import find_packages, setup

if __name__ == '__main__':
    setup(name='rank', packages=find_packages(), install_requires=['tensorflow==1.14'])
