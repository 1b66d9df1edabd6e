"""A header that is compiled once, for files that would all begin with it.

    precompiled_header(name = "prelude", header = "prelude.h", deps = [...])

What depends on it is compiled with what include_precompiled() returns. GCC then takes
the compiled header where the options are those that it was compiled with, and reads
the header itself where they are not (GCC manual, "Using Precompiled Headers"). clang
wants the options to be the same (Clang Compiler User's Manual, "Precompiled Headers").

GCC maps all of its compiled header, where clang reads only what a file needs and finds
templates instantiated in it; so that clang's may be large. It goes to the headers that
it was made from by their absolute paths, which is why it is made outside of a sandbox
(--strategy=CppPrecompile=local), and is kept in no cache.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The compiler of what is instrumented; see .bazelrc.
_CLANG = "//tools:instrumented"

def include_precompiled(label, header, clang_header = None, unless = []):
    """The options for files that begin with the precompiled header of a label.

    Args:
      label: of a precompiled_header.
      header: the name of its file.
      clang_header: that where clang compiles, if another.
      unless: configurations without it.
    """
    package, _, name = label.lstrip("/").partition(":")
    options = {setting: [] for setting in unless}
    options[_CLANG] = [
        "-include-pch",
        "$(BINDIR)/%s/%s/%s.pch" % (package, name, clang_header or header),
    ]
    options["//conditions:default"] = ["-include", header]
    return select(options)

# Bazel knows when a header has changed.
_CLANG_OPTIONS = ["-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp"]

def _precompiled_header_impl(ctx):
    header = ctx.file.header
    toolchain = find_cpp_toolchain(ctx)
    is_clang = toolchain.compiler_executable.rpartition("/")[2].startswith("clang")
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )

    # A folder of its own: GCC looks for the compiled header first, folder by folder.
    compiled = ctx.actions.declare_file("%s/%s.%s" % (
        ctx.label.name,
        header.basename,
        "pch" if is_clang else "gch",
    ))
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = compiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts +
                             (_CLANG_OPTIONS if is_clang else []) +
                             ["-x", "c++-header"] + ctx.attr.copts,
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([header], transitive = [context.headers, toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "CppPrecompile",
        execution_requirements = {"no-cache": "1", "no-sandbox": "1"} if is_clang else {},
        progress_message = "Precompiling " + header.short_path,
    )
    own = cc_common.create_compilation_context(
        # clang names all that a compiled header was made from as a file's own.
        headers = depset(
            [header, compiled],
            transitive = [context.headers] if is_clang else [],
        ),
        quote_includes = depset([compiled.dirname, header.dirname]),
    )
    return [CcInfo(compilation_context = own)]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "copts": attr.string_list(),
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
