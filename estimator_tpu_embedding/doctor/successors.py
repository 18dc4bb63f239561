"""Says what took the place of names and modules of Python 2, and which package has a module.

The installed libraries are asked whether a name is there. These tables only say what to use instead
of one that is not. For what NumPy and Python 3 renamed, ruff has rules: NPY and UP.
"""

from __future__ import annotations

from .findings import Question

NAMES: dict[str, str] = dict(pair.split(':') for pair in (
    'builtins.basestring:str builtins.buffer:memoryview builtins.cmp:functools.cmp_to_key '
    'builtins.execfile:runpy.run_path builtins.file:open builtins.intern:sys.intern '
    'builtins.long:int builtins.raw_input:input builtins.reduce:functools.reduce '
    'builtins.reload:importlib.reload builtins.unichr:chr builtins.unicode:str '
    'builtins.xrange:range builtins.StandardError:Exception cgi.escape:html.escape '
    'itertools.ifilter:filter itertools.ifilterfalse:itertools.filterfalse itertools.imap:map '
    'itertools.izip:zip itertools.izip_longest:itertools.zip_longest operator.isCallable:callable '
    'os.errno:errno os.getcwdu:os.getcwd string.letters:string.ascii_letters '
    'string.lowercase:string.ascii_lowercase string.uppercase:string.ascii_uppercase '
    'string.maketrans:str.maketrans sys.maxint:sys.maxsize types.StringType:str '
    'types.UnicodeType:str types.IntType:int types.FloatType:float types.ListType:list '
    'types.TupleType:tuple types.DictType:dict urllib.quote:urllib.parse.quote '
    'urllib.unquote:urllib.parse.unquote urllib.urlencode:urllib.parse.urlencode '
    'urllib.urlopen:urllib.request.urlopen urllib.urlretrieve:urllib.request.urlretrieve').split())
"""By the whole path of a name, what it is called today."""

MODULES: dict[str, str] = dict(pair.split(':') for pair in (
    'BaseHTTPServer:http.server CGIHTTPServer:http.server ConfigParser:configparser '
    'Cookie:http.cookies HTMLParser:html.parser Queue:queue SimpleHTTPServer:http.server '
    'SocketServer:socketserver StringIO:io Tkinter:tkinter UserDict:collections '
    'UserList:collections __builtin__:builtins anydbm:dbm asynchat:asyncio asyncore:asyncio '
    'cPickle:pickle cStringIO:io commands:subprocess cookielib:http.cookiejar copy_reg:copyreg '
    'distutils:setuptools dummy_thread:_thread dummy_threading:threading exceptions:builtins '
    'formatter:string htmlentitydefs:html.entities httplib:http.client imp:importlib md5:hashlib '
    'new:types parser:ast pipes:subprocess popen2:subprocess repr:reprlib '
    'robotparser:urllib.robotparser sets:set sha:hashlib thread:_thread urllib2:urllib.request '
    'urlparse:urllib.parse xml.etree.cElementTree:xml.etree.ElementTree xmlrpclib:xmlrpc.client'
).split())
"""By the path of a module that Python had once, the module that has its names today."""

_NO_SUCCESSOR = frozenset((
    'aifc audioop binhex cgi cgitb chunk compiler crypt htmllib ihooks imghdr lib2to3 macpath '
    'mailcap mimetools msilib multifile nis nntplib ossaudiodev rexec rfc822 smtpd sndhdr spwd '
    'sunau symbol telnetlib user uu xdrlib').split())

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


def instead_of(question: Question) -> str:
    """Returns what to use instead of a lost name of Python, or `''`.

    >>> instead_of(Question('itertools', 'izip')), instead_of(Question('cPickle', 'loads'))
    ('zip', 'pickle')
    """
    return NAMES.get(question.path) or next(
        (MODULES[path] for path in _ends(question.path) if path in MODULES), '')


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
