"""Calls of the AWS CLI without its start, which is 0.4 s of CPU: nearly all of it imports modules.

`aws-cli.py serve SOCKET` imports the AWS CLI once and forks for each call; it ends when its standard input does. Each call is
`aws-cli.py call SOCKET WORDS…`: it hands its words, folder, environment and standard streams to the fork, which runs the AWS
CLI's own main in them, and ends with its exit code. It imports hardly anything itself.
"""

import _socket
import marshal
import os
import sys


def call(path, words):
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(path)
    request = marshal.dumps((words, os.getcwd(), dict(os.environ)))
    streams = b''.join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
    connection.sendmsg([len(request).to_bytes(4, 'big')], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(request)
    code = connection.recv(1)
    if not code:
        sys.exit('the AWS CLI ended without an exit code')
    os._exit(code[0])


def serve(path):
    import select
    import signal
    import socket

    before = set(os.environ.items())
    import awscli.clidriver

    # the path of its data
    own = dict(set(os.environ.items()) - before)
    # loads what the first command would load
    awscli.clidriver.create_clidriver()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        # nobody waits for the forks
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print('ready', flush=True)
        while sys.stdin not in (ready := select.select([listener, sys.stdin], [], [])[0]):
            connection = listener.accept()[0] if ready else None
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os._exit(answer(connection, own, awscli.clidriver.main))
            connection.close()


def answer(connection, own, main):
    import socket

    size, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile('rb') as received:
        words, folder, environment = marshal.loads(received.read(int.from_bytes(size, 'big')))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment | own)
    sys.argv = ['aws', *words]
    code = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120  # as Python does
    connection.sendall(bytes([code or 0]))
    return 0


if __name__ == '__main__':
    {'call': lambda path, *words: call(path, list(words)), 'serve': serve}[sys.argv[1]](*sys.argv[2:])
