//! What keeps a Registry from going while a job works on it: a finalizer. A job puts it there before
//! it begins, and the Registry's reconciler takes it away once there is no job: a Registry that is
//! idle can be deleted, and its namespace and its kind with it, when nobody is here any more to let
//! it go. Every change is made to the very state that was looked at.

use crate::object::REGISTRY;
use kube::Client;
use kube::api::ObjectMeta;
use serde_json::json;

const FINALIZER: &str = "sbomscanner.kubewarden.io/running-job";

/// Who needs a Registry that is there to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A job that has not ended.
    Job,
    /// One that is about to be there. It puts the finalizer there itself.
    Coming,
    Nobody,
}

/// What is to be done about the finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knot {
    Tie,
    Untie,
    /// It is as it should be, or will be soon.
    Leave,
}

/// Decides what is to be done about the finalizer of a Registry.
pub(crate) fn knot(is_tied: bool, need: Need) -> Knot {
    match (is_tied, need) {
        // The job has not come so far; or somebody took it away, maybe we while the job came.
        (false, Need::Job) => Knot::Tie,
        (true, Need::Nobody) => Knot::Untie,
        (true, Need::Job) | (_, Need::Coming) | (false, Need::Nobody) => Knot::Leave,
    }
}

/// Whether it is there.
pub(crate) fn is_tied(registry: &ObjectMeta) -> bool {
    let mut known = registry.finalizers.iter().flatten();
    known.any(|known| known == FINALIZER)
}

/// Puts it there, unless somebody writes the Registry meanwhile.
pub(crate) async fn tie(client: &Client, registry: &ObjectMeta) -> Result<(), kube::Error> {
    write(client, registry, tied(registry)).await
}

/// Takes it away, unless somebody writes the Registry meanwhile.
pub(crate) async fn untie(client: &Client, registry: &ObjectMeta) -> Result<(), kube::Error> {
    write(client, registry, untied(registry)).await
}

fn tied(registry: &ObjectMeta) -> Vec<String> {
    let mut finalizers = untied(registry);
    finalizers.push(FINALIZER.into());
    finalizers
}

fn untied(registry: &ObjectMeta) -> Vec<String> {
    let mut others = registry.finalizers.clone().unwrap_or_default();
    others.retain(|known| known != FINALIZER);
    others
}

async fn write(
    client: &Client,
    registry: &ObjectMeta,
    finalizers: Vec<String>,
) -> Result<(), kube::Error> {
    let finalizers = Some(finalizers).filter(|finalizers| !finalizers.is_empty());
    let patch = json!({"metadata": {
        "resourceVersion": registry.resource_version, "finalizers": finalizers,
    }});
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let (namespace, name) = (part(&registry.namespace), part(&registry.name));
    REGISTRY.merge(client, &namespace, &name, &patch).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_tied_while_there_is_a_job_and_untied_when_there_is_none() {
        for (is_tied, need, expected) in [
            (false, Need::Job, Knot::Tie),
            (true, Need::Job, Knot::Leave),
            (false, Need::Coming, Knot::Leave),
            (true, Need::Coming, Knot::Leave),
            (false, Need::Nobody, Knot::Leave),
            (true, Need::Nobody, Knot::Untie),
        ] {
            assert_eq!(knot(is_tied, need), expected, "{is_tied} {need:?}");
        }
    }

    #[test]
    fn what_is_done_leaves_nothing_to_do() {
        for need in [Need::Job, Need::Coming, Need::Nobody] {
            for is_tied in [false, true] {
                let after = match knot(is_tied, need) {
                    Knot::Tie => true,
                    Knot::Untie => false,
                    Knot::Leave => is_tied,
                };
                assert_eq!(knot(after, need), Knot::Leave, "{is_tied} {need:?}");
            }
        }
    }

    #[test]
    fn finalizers_of_others_stay() {
        let registry = |finalizers: &[&str]| ObjectMeta {
            finalizers: Some(finalizers.iter().map(|&name| name.to_owned()).collect()),
            ..ObjectMeta::default()
        };
        let both = ["example.org/hold", FINALIZER];
        assert_eq!(tied(&registry(&["example.org/hold"])), both);
        assert_eq!(untied(&registry(&both)), ["example.org/hold"]);
        assert!(is_tied(&registry(&both)));
        let bare = ObjectMeta::default();
        assert_eq!(tied(&bare), [FINALIZER]);
        assert!(untied(&bare).is_empty() && !is_tied(&bare));
    }
}
