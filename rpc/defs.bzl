"""Bazel rules for services: C++ out of proto_library targets.

    load("//rpc:defs.bzl", "cc_rpc_library")

    proto_library(
        name = "kv_proto",
        srcs = ["kv.proto"],
    )

    cc_rpc_library(
        name = "kv_cc_rpc",
        srcs = [":kv_proto"],
    )

    cc_binary(
        name = "server",
        srcs = ["server.cc"],  # includes "examples/kv/kv.rpc.pb.h"
        deps = [":kv_cc_rpc"],
    )

The generated headers are included by the path under which other .proto files
import the .proto file, with .rpc.pb.h at its end: from the workspace's root,
unless the proto_library says otherwise (strip_import_prefix, import_prefix).
Mocks of the stubs, for tests, come with generate_mocks = True, and are included
as "examples/kv/kv_mock.rpc.pb.h".
"""

def _import_path(proto_info, file):
    """The path under which .proto files import `file`."""
    root = proto_info.proto_source_root
    if root and root != "." and file.path.startswith(root + "/"):
        return file.path[len(root) + 1:]
    return file.path

def _generate(ctx, proto_info):
    """Declares the outputs for one proto_library and the action that makes them.

    Returns: the headers and the sources, two lists of files.
    """
    imports = [_import_path(proto_info, f) for f in proto_info.direct_sources]
    bases = [path[:-len(".proto")] for path in imports]
    directory = "_rpc/" + ctx.attr.library
    headers = [
        ctx.actions.declare_file("{}/{}.rpc.pb.h".format(directory, base))
        for base in bases
    ]
    sources = [
        ctx.actions.declare_file("{}/{}.rpc.pb.cc".format(directory, base))
        for base in bases
    ]
    if not headers:
        return [], []  # a proto_library that only groups others
    mocks = [
        ctx.actions.declare_file("{}/{}_mock.rpc.pb.h".format(directory, base))
        for base in bases
        if ctx.attr.generate_mocks
    ]

    # Where the outputs' common folder is, seen from the action.
    out_dir = headers[0].path[:-len("/{}.rpc.pb.h".format(bases[0]))]

    args = ctx.actions.args()
    args.add(ctx.executable._plugin, format = "--plugin=protoc-gen-rpc=%s")
    args.add("--rpc_out=" + out_dir)
    args.add_all(ctx.attr.options, format_each = "--rpc_opt=%s")
    if mocks:
        args.add("--rpc_opt=generate_mock_code=true")
    args.add_all(proto_info.transitive_proto_path, format_each = "-I%s")
    args.add_all(imports)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = proto_info.transitive_sources,
        outputs = headers + mocks + sources,
        tools = [ctx.executable._plugin],
        mnemonic = "GenerateRpc",
        progress_message = "Generating RPC code for {}".format(ctx.label),
    )
    return headers + mocks, sources

def _rpc_codegen_impl(ctx):
    headers = []
    sources = []
    for src in ctx.attr.srcs:
        new_headers, new_sources = _generate(ctx, src[ProtoInfo])
        headers += new_headers
        sources += new_sources
    return [
        DefaultInfo(files = depset(headers + sources)),
        OutputGroupInfo(
            headers = depset(headers),
            sources = depset(sources),
        ),
    ]

_rpc_codegen = rule(
    implementation = _rpc_codegen_impl,
    doc = "Runs protoc-gen-rpc over the files of proto_library targets.",
    attrs = {
        "generate_mocks": attr.bool(
            doc = "Makes headers with mocks, too.",
        ),
        "library": attr.string(
            doc = "Names the folder of the outputs.",
            mandatory = True,
        ),
        "options": attr.string_list(
            doc = "Parameters of the plugin, NAME=VALUE.",
        ),
        "srcs": attr.label_list(
            doc = "proto_library targets.",
            mandatory = True,
            allow_empty = False,
            providers = [ProtoInfo],
        ),
        "_plugin": attr.label(
            default = Label("//rpc/compiler:protoc-gen-rpc"),
            executable = True,
            cfg = "exec",
        ),
        "_protoc": attr.label(
            default = Label("@com_google_protobuf//:protoc"),
            executable = True,
            allow_files = True,
            cfg = "exec",
        ),
    },
)

def cc_rpc_library(
        name,
        srcs,
        deps = [],
        grpc_only = False,
        services_namespace = None,
        generate_mocks = False,
        visibility = None,
        testonly = None,
        tags = [],
        **kwargs):
    """A cc_library of the services in .proto files, with their messages.

    It is used as gRPC's cc_grpc_library is, and takes what that takes:

        cc_rpc_library(
            name = "kv_cc_rpc",
            srcs = [":kv_proto"],
            grpc_only = True,
            deps = [":kv_cc_proto"],
        )

    or, shorter, without `deps`: the C++ messages of `srcs` are made along the
    way, and are the same objects as those of a cc_proto_library that somebody
    else has over the same proto_library.

    Only the .proto files that are `srcs` of the given proto_library targets are
    generated from; an imported file with services needs a cc_rpc_library of its
    own.

    Args:
      name: the cc_library's name.
      srcs: proto_library targets, in this package or another, also of another
        repository.
      deps: further C++ dependencies, such as the cc_proto_library over `srcs`.
      grpc_only: do not make the C++ messages: `deps` has them.
      services_namespace: a namespace inside the package's for the classes.
      generate_mocks: make kv_mock.rpc.pb.h, too, with a class for each service
        that mocks its stub. It includes <gmock/gmock.h>, so what includes it
        depends on googletest; the library itself does not.
      visibility: of the cc_library.
      testonly: as everywhere.
      tags: as everywhere.
      **kwargs: for the cc_library (copts, linkstatic, ...).
    """
    common = {"tags": tags, "testonly": testonly}
    codegen = "_{}_codegen".format(name)
    _rpc_codegen(
        name = codegen,
        srcs = srcs,
        library = name,
        generate_mocks = generate_mocks,
        options = ["services_namespace=" + services_namespace] if services_namespace else [],
        visibility = ["//visibility:private"],
        **common
    )
    for group in ["headers", "sources"]:
        native.filegroup(
            name = "_{}_{}".format(name, group),
            srcs = [":" + codegen],
            output_group = group,
            visibility = ["//visibility:private"],
            **common
        )

    messages = []
    for index, src in enumerate([] if grpc_only else srcs):
        # cc_proto_library takes one proto_library at a time.
        messages.append("_{}_messages_{}".format(name, index))
        native.cc_proto_library(
            name = messages[-1],
            deps = [src],
            visibility = ["//visibility:private"],
            **common
        )

    native.cc_library(
        name = name,
        srcs = [":_{}_sources".format(name)],
        hdrs = [":_{}_headers".format(name)],
        includes = ["_rpc/" + name],
        deps = deps + [":" + m for m in messages if m not in deps] + [
            Label("//rpc:rpc"),
        ],
        visibility = visibility,
        **dict(kwargs, **common)
    )
