"""Says what took the place of names that NumPy and Python lost, and which package has a module.

The installed libraries are asked whether a name is there. This table only says what to use instead
of one that is not. A name with `=` in front has the same meaning and takes the same arguments.
"""

from __future__ import annotations

from ..compat import old_python
from .facts import Question

_URL_PARSE = 'quote quote_plus unquote unquote_plus urlencode'
_URL_REQUEST = 'urlopen urlretrieve urlcleanup pathname2url url2pathname'

NAMES: dict[str, str] = {
    **{old: f'={new}' for old, new in old_python.SAME.items()},
    'numpy.NINF': '-numpy.inf', 'numpy.NZERO': '-0.0', 'numpy.PZERO': '0.0',
    'numpy.asfarray': 'numpy.asarray(a, dtype=float)', 'numpy.asscalar': 'a.item()',
    'numpy.cast': 'numpy.asarray(a, dtype=...)', 'numpy.in1d': 'numpy.isin',
    'numpy.issubclass_': 'issubclass', 'numpy.issubsctype': 'numpy.issubdtype',
    'numpy.find_common_type': 'numpy.result_type', 'numpy.msort': 'numpy.sort(a, axis=0)',
    'numpy.safe_eval': 'ast.literal_eval', 'numpy.sctypes': 'the types by name',
    'numpy.set_string_function': 'numpy.set_printoptions(formatter=...)',
    'numpy.random.random_integers': 'numpy.random.randint(low, high + 1)',
    'numpy.recfromcsv': 'numpy.genfromtxt(..., delimiter=",", dtype=None)',
    'numpy.ndarray.tostring': 'tobytes', 'numpy.ndarray.itemset': 'an assignment to an index',
    **{f'typing.{name}': f'=collections.abc.{name}' for name in ('ByteString',)},
    **{f'builtins.{old}': new for old, new in (pair.split(':') for pair in (
        'basestring:=builtins.str intern:=sys.intern long:=builtins.int raw_input:=builtins.input '
        'reduce:=functools.reduce reload:=importlib.reload unichr:=builtins.chr '
        'unicode:=builtins.str xrange:=builtins.range StandardError:=builtins.Exception '
        'apply:f(*args) buffer:memoryview cmp:functools.cmp_to_key execfile:runpy.run_path '
        'file:open').split())},
    'builtins.dict.has_key': 'the operator in', 'builtins.dict.iteritems': 'items',
    'builtins.dict.iterkeys': 'keys', 'builtins.dict.itervalues': 'values',
    'cgi.escape': 'html.escape', 'fractions.gcd': 'math.gcd, which is never negative',
    'inspect.getargspec': 'inspect.getfullargspec, whose result has more fields',
    'inspect.formatargspec': 'inspect.signature', 'inspect.getmoduleinfo': 'inspect.getmodulename',
    'itertools.ifilter': '=builtins.filter', 'itertools.ifilterfalse': '=itertools.filterfalse',
    'itertools.imap': '=builtins.map', 'itertools.izip': '=builtins.zip',
    'itertools.izip_longest': '=itertools.zip_longest',
    'locale.format': 'locale.format_string', 'operator.isCallable': '=builtins.callable',
    'operator.div': 'operator.truediv or operator.floordiv',
    'os.errno': '=errno', 'os.getcwdu': '=os.getcwd', 'os.popen2': 'subprocess.Popen',
    'os.popen3': 'subprocess.Popen',
    'platform.dist': 'the package distro', 'platform.linux_distribution': 'the package distro',
    'random.jumpahead': 'another seed', 'string.letters': '=string.ascii_letters',
    'string.lowercase': '=string.ascii_lowercase', 'string.uppercase': '=string.ascii_uppercase',
    'string.maketrans': 'str.maketrans', 'string.join': 'the method join of a str',
    'string.split': 'the method split of a str', 'string.replace': 'the method replace of a str',
    'string.strip': 'the method strip of a str', 'string.lower': 'the method lower of a str',
    'string.upper': 'the method upper of a str', 'string.atoi': 'int', 'string.atof': 'float',
    'sys.maxint': '=sys.maxsize', 'sys.exc_type': 'sys.exc_info()', 'sys.exc_clear': 'nothing',
    'sys.setdefaultencoding': 'nothing: texts are Unicode',
    'time.clock': 'time.perf_counter, or time.process_time for CPU time',
    **{f'types.{name}Type': f'=builtins.{new}' for name, new in (
        ('String', 'str'), ('Unicode', 'str'), ('Int', 'int'), ('Long', 'int'),
        ('Float', 'float'), ('List', 'list'), ('Tuple', 'tuple'), ('Dict', 'dict'),
        ('Boolean', 'bool'), ('Object', 'object'))},
    **{f'urllib.{name}': f'=urllib.parse.{name}' for name in _URL_PARSE.split()},
    **{f'urllib.{name}': f'=urllib.request.{name}' for name in _URL_REQUEST.split()},
    **{f'urllib2.{name}': f'=urllib.request.{name}' for name in (
        'urlopen Request build_opener install_opener HTTPHandler ProxyHandler').split()},
    'urllib2.HTTPError': '=urllib.error.HTTPError', 'urllib2.URLError': '=urllib.error.URLError',
    'distutils.version.LooseVersion': 'packaging.version.Version',
    'distutils.version.StrictVersion': 'packaging.version.Version',
    'distutils.spawn.find_executable': 'shutil.which',
    'distutils.dir_util.copy_tree': 'shutil.copytree', 'distutils.util.strtobool': 'a comparison'}
"""By the whole path of a name."""

MODULES: dict[str, str] = {
    'BaseHTTPServer': '=http.server', 'CGIHTTPServer': '=http.server',
    'ConfigParser': '=configparser', 'Cookie': '=http.cookies', 'HTMLParser': '=html.parser',
    'Queue': '=queue', 'SimpleHTTPServer': '=http.server', 'SocketServer': '=socketserver',
    'StringIO': 'io', 'Tkinter': '=tkinter', 'UserDict': 'collections', 'UserList': 'collections',
    '__builtin__': '=builtins', 'anydbm': '=dbm', 'asynchat': 'asyncio', 'asyncore': 'asyncio',
    'audioop': 'the package audioop-lts', 'cPickle': '=pickle', 'cStringIO': 'io',
    'cgi': 'the package legacy-cgi', 'commands': 'subprocess',
    'cookielib': '=http.cookiejar', 'copy_reg': '=copyreg', 'crypt': 'the package crypt-r',
    'distutils': 'setuptools, which brings it', 'dummy_thread': '_thread',
    'dummy_threading': '=threading', 'exceptions': '=builtins', 'formatter': 'string',
    'htmlentitydefs': '=html.entities', 'httplib': '=http.client', 'imghdr': 'the package filetype',
    'imp': 'importlib', 'lib2to3': 'the package libcst', 'md5': 'hashlib', 'new': 'types',
    'parser': 'ast', 'pipes': 'subprocess, shlex', 'popen2': 'subprocess', 'repr': '=reprlib',
    'robotparser': '=urllib.robotparser', 'sets': 'set', 'sha': 'hashlib',
    'sndhdr': 'the package filetype', 'telnetlib': 'the package telnetlib3', 'thread': '=_thread',
    'urllib2': 'urllib.request, urllib.error', 'urlparse': '=urllib.parse',
    'xml.etree.cElementTree': '=xml.etree.ElementTree', 'xmlrpclib': '=xmlrpc.client'}
"""By the path of a module that Python had once."""

_NO_SUCCESSOR = frozenset((
    'aifc binhex cgitb chunk compiler htmllib ihooks macpath mailcap mimetools msilib multifile '
    'nis nntplib ossaudiodev rexec rfc822 smtpd spwd sunau symbol user uu xdrlib').split())

_PACKAGES = {  # module: the package that has it, where the two have different names
    'Crypto': 'pycryptodome', 'MySQLdb': 'mysqlclient', 'OpenSSL': 'pyOpenSSL', 'PIL': 'Pillow',
    'absl': 'absl-py', 'apache_beam': 'apache-beam', 'attr': 'attrs', 'bs4': 'beautifulsoup4',
    'cv2': 'opencv-python', 'dateutil': 'python-dateutil',
    'google.cloud': 'google-cloud-{}', 'google.protobuf': 'protobuf',
    'googleapiclient': 'google-api-python-client', 'jwt': 'PyJWT',
    'mpl_toolkits': 'matplotlib', 'official': 'tf-models-official',
    'official.r1': '', 'pkg_resources': 'setuptools',
    'psycopg2': 'psycopg2-binary', 'serial': 'pyserial',
    'skimage': 'scikit-image', 'sklearn': 'scikit-learn',
    'tensorflow_serving': 'tensorflow-serving-api',
    'tf_keras': 'tf-keras', 'tf_slim': 'tf-slim', 'typing_extensions': 'typing-extensions',
    'yaml': 'PyYAML', 'zmq': 'pyzmq'}
_OF_TENSORFLOW = frozenset((  # `tensorflow_hub` is in `tensorflow-hub`, and so on.
    'addons cloud compression data_validation datasets decision_forests federated gan gnn graphics '
    'hub io lattice metadata model_analysis model_optimization privacy probability quantum ranking '
    'recommenders similarity text transform').split())
_SAME_NAME = frozenset((
    'bokeh cloudpickle dill fasttext fire gensim gym h5py horovod jax jieba joblib keras lightgbm '
    'lmdb matplotlib mock networkx nltk numba pandas psutil pyarrow pycocotools pyspark pytest '
    'regex requests scipy seaborn sentencepiece simplejson six sqlalchemy statsmodels sympy '
    'tensor2tensor tensorboardX tflearn tfx torch torchvision tqdm transformers ujson xgboost'
).split())


def instead_of(question: Question) -> tuple[str, bool]:
    """Returns what to use instead of a lost name, and whether that is exactly the same.

    >>> instead_of(Question('collections', 'Mapping'))
    ('collections.abc.Mapping', True)
    >>> instead_of(Question('time', 'clock'))[1], instead_of(Question('numpy', 'nothing'))
    (False, ('', False))
    """
    path = question.path
    found = NAMES.get(path, '')
    for module in _ends(path) if not found else ():
        if module in MODULES:
            found, rest = MODULES[module], path.removeprefix(module)
            if found.startswith('='):  # A module under another name has the same names.
                found += rest
            break
    return found.removeprefix('='), found.startswith('=')


def was_in_python(question: Question) -> bool:
    """Whether Python, of some version, has had the module of a question."""
    return any(path in MODULES or path in _NO_SUCCESSOR for path in _ends(question.module))


def package_of(module: str) -> str:
    """Returns the package that has a module, as `pip install` calls it; `''` if it is not known.

    >>> package_of('cv2'), package_of('tensorflow_hub.tools'), package_of('utils')
    ('opencv-python', 'tensorflow-hub', '')
    """
    top, _, rest = module.partition('.')
    if top.startswith('tensorflow_') and top.removeprefix('tensorflow_') in _OF_TENSORFLOW:
        return top.replace('_', '-')
    found = next((_PACKAGES[path] for path in _ends(module) if path in _PACKAGES), '')
    if '{}' in found:
        name = rest.partition('.')[2].partition('.')[0]
        return found.format(name.replace('_', '-')) if name else ''
    return found or (top if top in _SAME_NAME else '')


def made_by(module: str) -> str:
    """Returns what makes a module that is not there, as the end of a sentence, or `''`.

    >>> made_by('protos.ranking_pb2')
    '; protoc --python_out=. makes it from ranking.proto'
    """
    name = module.rpartition('.')[2]
    return f'; protoc --python_out=. makes it from {name.removesuffix("_pb2")}.proto' if (
        name.endswith('_pb2')) else ''


def _ends(path: str) -> list[str]:
    """Returns the path, its package, the package of that, and so on."""
    parts = path.split('.')
    return ['.'.join(parts[:end]) for end in range(len(parts), 0, -1)]
