"""Functions for agents in the kernel of run_ipython: a window on one file, searches, readers of
documents. They print; they return nothing. A mistake is printed as a line that begins with ERROR.

The readers of PDF and LaTeX need pypdf (or PyPDF2) and pylatexenc and say so when those are missing;
everything else needs Python alone. Only file_editor returns something; it needs handrail-editor. The
readers of sound, pictures and videos ask a model, and are there only when OPENAI_API_KEY (or
SANDBOX_ENV_OPENAI_API_KEY) is set; that of videos needs ffmpeg.
"""

import base64
import json
import mimetypes
import os
import subprocess
import tempfile
import urllib.request
import uuid
import xml.etree.ElementTree
import zipfile

__all__ = ['open_file', 'goto_line', 'scroll_down', 'scroll_up', 'search_dir', 'search_file',
           'find_file', 'parse_pdf', 'parse_docx', 'parse_latex', 'parse_pptx', 'file_editor']

WINDOW = 100
MANY_FILES = 100

_file = None
_line = 1


def _fail(text):
    print('ERROR: ' + text)


def _lines(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.readlines()


def _total(path):
    return max(1, len(_lines(path)))


def _show(line, size, centred=True):
    """The header and the window, as printed."""
    global _line
    with open(_file, encoding='utf-8', errors='replace') as f:
        text = f.read()
    total = max(1, text.count('\n') + (0 if text.endswith('\n') or not text else 1))
    if not text.endswith('\n'):
        text += '\n'
    lines = text.splitlines(True)
    count = len(lines)
    _line = line = min(max(line, 1), count)
    half = max(1, size // 2)
    start, end = (line - half, line + half) if centred else (line, line + size)
    start, end = max(1, start), min(count, end)
    if start == 1:
        end = min(count, size)
    if end == count:
        start = max(1, end - size + 1)
    out = ['[File: %s (%d lines total)]\n' % (os.path.abspath(_file), total)]
    out.append('(%d more lines above)\n' % (start - 1) if start > 1
               else '(this is the beginning of the file)\n')
    for number in range(start, end + 1):
        one = lines[number - 1]
        out.append('%d|%s' % (number, one if one.endswith('\n') else one + '\n'))
    out.append('(%d more lines below)\n' % (count - end) if end < count
               else '(this is the end of the file)\n')
    return ''.join(out).rstrip()


def open_file(path, line_number=1, context_lines=WINDOW):
    """Opens a file and shows the lines around a line.

    Args:
        path: path of the file.
        line_number: the line in the middle, from 1.
        context_lines: how many lines to show, at most 100.
    """
    global _file
    if not os.path.isfile(path):
        return _fail('File %s not found.' % path)
    _file = os.path.abspath(path)
    total = _total(_file)
    if not isinstance(line_number, int) or not 1 <= line_number <= total:
        return _fail('Line number must be between 1 and %d' % total)
    if context_lines is None or context_lines < 1:
        context_lines = WINDOW
    text = _show(line_number, min(context_lines, WINDOW))
    if text.endswith('more lines below)'):
        text += '\n[Use `scroll_down` to view the next 100 lines of the file!]'
    print(text)


def _is_open():
    if _file is not None and os.path.isfile(_file):
        return True
    _fail('No file open. Use the open_file function first.')
    return False


def goto_line(line_number):
    """Shows the open file around a line.

    Args:
        line_number: the line, from 1.
    """
    if not _is_open():
        return
    total = _total(_file)
    if not isinstance(line_number, int) or not 1 <= line_number <= total:
        return _fail('Line number must be between 1 and %d.' % total)
    print(_show(line_number, WINDOW))


def scroll_down():
    """Shows the next 100 lines of the open file."""
    if _is_open():
        print(_show(min(_line + WINDOW, _total(_file)), WINDOW, centred=False))


def scroll_up():
    """Shows the 100 lines before those shown."""
    if _is_open():
        print(_show(max(_line - WINDOW, 1), WINDOW, centred=False))


def _matches(term, path):
    with open(path, encoding='utf-8', errors='ignore') as f:
        return [(number, line.strip()) for number, line in enumerate(f, 1) if term in line]


def search_dir(search_term, dir_path='./'):
    """Searches the files below a directory for a text; files whose names begin with a dot are left
    out.

    Args:
        search_term: the text.
        dir_path: path of the directory.
    """
    if not os.path.isdir(dir_path):
        return _fail('Directory %s not found' % dir_path)
    found, files = [], 0
    for top, _, names in os.walk(dir_path):
        for name in names:
            path = os.path.join(top, name)
            if name.startswith('.') or not os.path.isfile(path):
                continue  # a pipe would be waited for
            try:
                hits = _matches(search_term, path)
            except OSError:
                continue
            found += ['%s (Line %d): %s' % (path, number, line) for number, line in hits]
            files += bool(hits)
    if not found:
        print('No matches found for "%s" in %s' % (search_term, dir_path))
    elif files > MANY_FILES:
        print('More than %d files matched for "%s" in %s. Please narrow your search.'
              % (files, search_term, dir_path))
    else:
        print('[Found %d matches for "%s" in %s]' % (len(found), search_term, dir_path))
        print('\n'.join(found))
        print('[End of matches for "%s" in %s]' % (search_term, dir_path))


def search_file(search_term, file_path=None):
    """Searches a file for a text.

    Args:
        search_term: the text.
        file_path: path of the file; the open one if it is left out.
    """
    if file_path is None:
        file_path = _file
    if file_path is None:
        return _fail('No file specified or open. Use the open_file function first.')
    if not os.path.isfile(file_path):
        return _fail('File %s not found.' % file_path)
    found = _matches(search_term, file_path)
    if not found:
        return print('[No matches found for "%s" in %s]' % (search_term, file_path))
    print('[Found %d matches for "%s" in %s]' % (len(found), search_term, file_path))
    for number, line in found:
        print('Line %d: %s' % (number, line))
    print('[End of matches for "%s" in %s]' % (search_term, file_path))


def find_file(file_name, dir_path='./'):
    """Finds the files below a directory whose names hold a text.

    Args:
        file_name: the text.
        dir_path: path of the directory.
    """
    if not os.path.isdir(dir_path):
        return _fail('Directory %s not found' % dir_path)
    found = [os.path.join(top, name) for top, _, names in os.walk(dir_path)
             for name in names if file_name in name]
    if not found:
        return print('[No matches found for "%s" in %s]' % (file_name, dir_path))
    print('[Found %d matches for "%s" in %s]' % (len(found), file_name, dir_path))
    print('\n'.join(found))
    print('[End of matches for "%s" in %s]' % (file_name, dir_path))


# ---- documents ----

_WORD = '{http://schemas.openxmlformats.org/wordprocessingml/2006/main}'
_DRAW = '{http://schemas.openxmlformats.org/drawingml/2006/main}'
_SHOW = '{http://schemas.openxmlformats.org/presentationml/2006/main}'
_LINK = '{http://schemas.openxmlformats.org/officeDocument/2006/relationships}'


def parse_pdf(file_path):
    """Prints the text of a PDF file.

    Args:
        file_path: path of the file.
    """
    print('[Reading PDF file from %s]' % file_path)
    try:
        from pypdf import PdfReader
    except ImportError:
        try:
            from PyPDF2 import PdfReader
        except ImportError:
            return _fail('there is no reader of PDF files: apt-get install python3-pypdf')
    pages = PdfReader(file_path).pages
    print(''.join('@@ Page %d @@\n%s\n\n' % (number, page.extract_text())
                  for number, page in enumerate(pages, 1)).strip())


def _paragraph(node):
    text = []
    for part in node.iter():
        if part.tag == _WORD + 't':
            text.append(part.text or '')
        elif part.tag == _WORD + 'tab':
            text.append('\t')
        elif part.tag in (_WORD + 'br', _WORD + 'cr'):
            text.append('\n')
    return ''.join(text)


def parse_docx(file_path):
    """Prints the paragraphs of a DOCX file.

    Args:
        file_path: path of the file.
    """
    print('[Reading DOCX file from %s]' % file_path)
    with zipfile.ZipFile(file_path) as z:
        body = xml.etree.ElementTree.fromstring(z.read('word/document.xml')).find(_WORD + 'body')
    paragraphs = [] if body is None else body.findall(_WORD + 'p')
    print(''.join('@@ Page %d @@\n%s\n\n' % (number, _paragraph(p))
                  for number, p in enumerate(paragraphs, 1)))


def parse_latex(file_path):
    """Prints a LaTeX file as plain text.

    Args:
        file_path: path of the file.
    """
    print('[Reading LaTex file from %s]' % file_path)
    try:
        from pylatexenc.latex2text import LatexNodes2Text
    except ImportError:
        return _fail('there is no reader of LaTeX files: apt-get install python3-pylatexenc')
    with open(file_path, encoding='utf-8', errors='replace') as f:
        print(LatexNodes2Text().latex_to_text(f.read()).strip())


def _slides(z):
    """The slides in their order."""
    show = xml.etree.ElementTree.fromstring(z.read('ppt/presentation.xml'))
    links = xml.etree.ElementTree.fromstring(z.read('ppt/_rels/presentation.xml.rels'))
    target = {link.get('Id'): link.get('Target') for link in links}
    for slide in show.iter(_SHOW + 'sldId'):
        name = target[slide.get(_LINK + 'id')]
        path = name[1:] if name.startswith('/') else os.path.normpath('ppt/' + name)
        yield xml.etree.ElementTree.fromstring(z.read(path))


def _shape_text(shape):
    lines = []
    for paragraph in shape.iter(_DRAW + 'p'):
        lines.append(''.join('\v' if part.tag == _DRAW + 'br' else part.text or ''
                             for part in paragraph.iter()
                             if part.tag in (_DRAW + 't', _DRAW + 'br')))
    return '\n'.join(lines)


def parse_pptx(file_path):
    """Prints the text of a PPTX file.

    Args:
        file_path: path of the file.
    """
    print('[Reading PowerPoint file from %s]' % file_path)
    try:
        out = []
        with zipfile.ZipFile(file_path) as z:
            for number, slide in enumerate(_slides(z), 1):
                out.append('@@ Slide %d @@' % number)
                out += [_shape_text(body) for body in slide.iter(_SHOW + 'txBody')]
        print('\n'.join(out))
    except Exception as error:
        print('Error reading PowerPoint file: %s' % error)


# ---- the editor ----

def file_editor(command, path, file_text=None, view_range=None, old_str=None, new_str=None,
                insert_line=None, enable_linting=False):
    """Views, makes and edits a file.

    Args:
        command: view, create, str_replace, insert or undo_edit.
        path: absolute path of the file or directory.
        file_text: of create: the text of the new file.
        view_range: of view: the first and the last line, from 1; -1 is the end.
        old_str: of str_replace: the text to be replaced; it must occur once.
        new_str: of str_replace and insert: the new text.
        insert_line: of insert: the line after which it is put; 0 is the beginning.
        enable_linting: nothing is linted here.
    """
    programs = os.environ.get('SKILLS_LIBEXECDIR', '/usr/libexec/handrail')
    undo = os.environ.get('SKILLS_UNDODIR') or os.path.join(tempfile.gettempdir(),
                                                            'handrail-undo-%d' % os.getuid())
    args = {'command': command, 'path': path, 'file_text': file_text, 'view_range': view_range,
            'old_str': old_str, 'new_str': new_str, 'insert_line': insert_line}
    run = subprocess.run([os.path.join(programs, 'handrail-editor'), programs, undo],
                         input=json.dumps(args).encode(), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.decode(errors='replace').strip() or 'the editor failed')
    result = json.loads(run.stdout)
    if 'raised' in result:
        raise ValueError(result['raised'])
    error = result['error']
    shown = result['output'] if error is None else 'ERROR:\n' + error
    marker = 'oh_aci_output_' + uuid.uuid4().hex
    members = ','.join('"%s": %s' % (key, json.dumps(value)) for key, value in result.items())
    return ('<%s>\n{%s, "formatted_output_and_error": %s}\n</%s>'
            % (marker, members, json.dumps(shown), marker))


# ---- what a model says of a file ----

_DESCRIBE = 'Describe this image as detail as possible.'


def _setting(name, usual=''):
    return os.environ.get(name) or usual


def _key():
    return _setting('OPENAI_API_KEY', _setting('SANDBOX_ENV_OPENAI_API_KEY'))


def _ask(path, content_type, body):
    request = urllib.request.Request(
        _setting('OPENAI_BASE_URL', 'https://api.openai.com/v1').rstrip('/') + path, body,
        {'Content-Type': content_type, 'Authorization': 'Bearer ' + _key()})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def _form(fields, name, data):
    """multipart/form-data: the type and the body."""
    boundary = uuid.uuid4().hex
    parts = [('--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
              % (boundary, key, value)).encode() for key, value in fields.items()]
    quoted = name.replace('\\', '_').replace('"', '_').replace('\r', '_').replace('\n', '_')
    parts += [('--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n'
               'Content-Type: application/octet-stream\r\n\r\n' % (boundary, quoted)).encode(),
              data, ('\r\n--%s--\r\n' % boundary).encode()]
    return 'multipart/form-data; boundary=' + boundary, b''.join(parts)


def _describe(data, content_type, task):
    url = 'data:%s;base64,%s' % (content_type, base64.b64encode(data).decode())
    answer = _ask('/chat/completions', 'application/json', json.dumps({
        'model': _setting('OPENAI_MODEL', 'gpt-4o'),
        'max_tokens': int(_setting('MAX_TOKEN', '500')),
        'messages': [{'role': 'user', 'content': [
            {'type': 'text', 'text': task},
            {'type': 'image_url', 'image_url': {'url': url}}]}]}).encode())
    return answer['choices'][0]['message']['content']


def parse_audio(file_path, model='whisper-1'):
    """Prints what is said in a sound file.

    Args:
        file_path: path of the file.
        model: the model that listens.
    """
    print('[Transcribing audio file from %s]' % file_path)
    try:
        with open(file_path, 'rb') as f:
            body = _form({'model': model}, os.path.basename(file_path), f.read())
        print(_ask('/audio/transcriptions', *body)['text'])
    except Exception as error:
        print('Error transcribing audio file: %s' % error)


def parse_image(file_path, task=_DESCRIBE):
    """Prints what a picture shows.

    Args:
        file_path: path of the file.
        task: what to say about it.
    """
    print('[Reading image file from %s]' % file_path)
    try:
        with open(file_path, 'rb') as f:
            data = f.read()
        print(_describe(data, mimetypes.guess_type(file_path)[0] or 'image/jpeg', task))
    except Exception as error:
        print('Error with the request: %s' % error)


def _frames(file_path, interval, top):
    """Each interval-th picture as a JPEG file, the first one included."""
    subprocess.run(['ffmpeg', '-v', 'error', '-i', 'file:' + file_path, '-vf',
                    'select=not(mod(n\\,%d))' % interval, '-vsync', 'vfr',
                    os.path.join(top, '%06d.jpg')], check=True, stdin=subprocess.DEVNULL)
    return sorted(os.listdir(top))


def parse_video(file_path, task=_DESCRIBE, frame_interval=30):
    """Prints what pictures of a video show.

    Args:
        file_path: path of the file.
        task: what to say about each.
        frame_interval: each so-many-th is looked at.
    """
    print('[Processing video file from %s with frame interval %s]' % (file_path, frame_interval))
    try:
        with tempfile.TemporaryDirectory() as top:
            names = _frames(file_path, int(frame_interval), top)
            print('Totally %d would be analyze...\n' % len(names))
            for number, name in enumerate(names):
                print('Process the %s, current No. %d frame...' % (file_path, number * frame_interval))
                with open(os.path.join(top, name), 'rb') as f:
                    text = _describe(f.read(), 'image/jpeg', task)
                print("Frame %d's content: %s\n" % (number, text))
    except Exception as error:
        print('Error with the request: %s' % error)


if _key():
    __all__ += ['parse_audio', 'parse_image', 'parse_video']
