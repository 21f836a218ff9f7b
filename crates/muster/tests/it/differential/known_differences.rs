//! Where Muster is meant to answer otherwise than kube-apiserver, and why. An entry that no longer
//! holds fails the test, so the list cannot outlive its reasons.

use super::compare::Difference;

/// A difference that stands.
#[derive(Debug)]
pub(super) struct Known {
    /// The title of the case, `topic: sentence`, or its start.
    pub case: &'static str,
    /// The start of what differs (`status`, `body /message`); empty for everything in the case.
    pub what: &'static str,
    /// What kube-apiserver's answer contains; empty for anything.
    pub real: &'static str,
    /// Whether it shows on every machine. If not, its absence is no fault.
    pub everywhere: bool,
    /// Why it stands.
    pub why: &'static str,
}

impl Known {
    /// Whether this entry explains the difference.
    pub(super) fn covers(&self, difference: &Difference) -> bool {
        // The reason is for readers, but an entry without one explains nothing.
        !self.why.is_empty()
            && difference.case.starts_with(self.case)
            && difference.what.starts_with(self.what)
            && difference.answer.contains(self.real)
    }
}

/// All of them.
pub(super) const LIST: &[Known] = &[
    Known {
        case: "watch: a watch from a revision that is long gone ends with 410",
        what: "",
        real: "too old resource version",
        everywhere: true,
        why: "every kind has a clock of its own that starts at 1, and in a young store the log \
              still reaches back to it; the client tests cover 410 after compaction",
    },
    Known {
        case: "",
        what: "body /message",
        real: "invalid character",
        everywhere: true,
        why: "the words of Go's JSON parser; the code, the reason and what stands around them are equal",
    },
    Known {
        case: "",
        what: "body /message",
        real: "unexpected end of JSON input",
        everywhere: true,
        why: "the words of Go's JSON parser; the code, the reason and what stands around them are equal",
    },
    Known {
        case: "secret: known types demand their keys",
        what: "body /details/causes",
        real: "invalid character",
        everywhere: true,
        why: "the words of Go's JSON parser; the code, the reason and what stands around them are equal",
    },
    Known {
        case: "",
        what: "body /message",
        real: "yaml: ",
        everywhere: true,
        why: "the words of Go's YAML parser; ours also refuses a key that stands twice",
    },
    Known {
        case: "",
        what: "body /message",
        real: "application/vnd.kubernetes.protobuf",
        everywhere: true,
        why: "answers are given in JSON alone",
    },
    Known {
        case: "body: an answer is given only in an acceptable form",
        what: "body /details",
        real: "{}",
        everywhere: true,
        why: "answers are given in JSON alone",
    },
    Known {
        case: "body: a body must be UTF-8",
        what: "",
        real: "",
        everywhere: true,
        why: "Go puts a replacement character in the place of bytes that are no UTF-8; we refuse them",
    },
    Known {
        case: "body: kind and version of the body must be those of the path",
        what: "header warning",
        real: "unknown field",
        everywhere: true,
        why: "an object of another version is refused before its fields are looked at",
    },
    Known {
        case: "update: another uid means another object",
        what: "body /message",
        real: "StorageError",
        everywhere: true,
        why: "kube-apiserver shows the key in etcd; we have none",
    },
    Known {
        case: "route: HEAD and OPTIONS",
        what: "status",
        real: "405",
        everywhere: true,
        why: "HEAD is answered for every kind, not for custom ones alone",
    },
    Known {
        case: "list: all namespaces are listed together",
        what: "body /items/",
        real: "",
        everywhere: true,
        why: "namespaces are ordered by their names, not by their names with a slash behind",
    },
    Known {
        case: "strategic: a strategic patch must be sound",
        what: "",
        real: "cannot convert int64",
        everywhere: true,
        why: "the same fault, found while decoding rather than while converting",
    },
    Known {
        case: "field validation: ",
        what: "body /",
        real: "map[unknown:1]",
        everywhere: true,
        why: "a strategic patch is shown as the object it makes, not as a Go map",
    },
    Known {
        case: "namespace: ",
        what: "body /metadata/managedFields",
        real: "",
        everywhere: true,
        why: "the label and finalizer of a namespace are the server's, whoever names them first",
    },
    Known {
        case: "namespace: a namespace is finalized by its own door",
        what: "body /metadata/resourceVersion",
        real: "",
        everywhere: true,
        why: "finalizing an unfinalized namespace again changes nothing",
    },
    Known {
        case: "list: a page with a selector does not say how many remain",
        what: "body /metadata/continue",
        real: "continue",
        everywhere: true,
        why: "etcd cannot say whether what follows matches the selector; our store can",
    },
    Known {
        case: "watch: ",
        what: "event ",
        real: "storage feature RequestWatchProgress is disabled",
        everywhere: false,
        why: "kube-apiserver sends no initial events on an etcd older than 3.4.31, which is what \
              Debian 12 has; with a newer one the answers are compared",
    },
];
