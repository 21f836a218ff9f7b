"""What a user of Python's Kubernetes client does, one story per function."""

import sys
import time

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import (
    ConflictError,
    NotFoundError,
    UnprocessibleEntityError,
)

GROUP = "sbomscanner.kubewarden.io/v1alpha1"
LIMIT = 30


def registry(name, uri="a.example.org"):
    return {
        "apiVersion": GROUP,
        "kind": "Registry",
        "metadata": {"name": name, "labels": {"team": name}},
        "spec": {"uri": uri, "catalogType": "NoCatalog", "repositories": [{"name": "app"}]},
    }


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def raises(kind, action, *arguments, **keywords):
    try:
        action(*arguments, **keywords)
    except kind as error:
        return error
    raise AssertionError(f"{action} should have raised {kind}")


def until(what, look):
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen")


def dynamic():
    registries = DynamicClient(client.ApiClient()).resources.get(api_version=GROUP, kind="Registry")
    assert registries.namespaced and registries.short_names == ["reg"]
    place = {"namespace": "default"}

    made = registries.create(body=registry("one"), **place)
    assert made.metadata.uid and made.spec.scanOnChange is True, made
    assert registries.get(name="one", **place).spec.uri == "a.example.org"
    raises(ConflictError, registries.create, body=registry("one"), **place)
    wrong = registry("wrong")
    wrong["spec"]["catalogType"] = "Nonsense"
    refused = raises(UnprocessibleEntityError, registries.create, body=wrong, **place)
    assert "spec.catalogType" in str(refused), refused

    # Merge patch, JSON patch, replace, server-side apply, status.
    merged = registries.patch(
        name="one",
        body={"spec": {"uri": "b.example.org"}},
        content_type="application/merge-patch+json",
        **place,
    )
    assert merged.spec.uri == "b.example.org" and merged.metadata.generation == 2
    patched = registries.patch(
        name="one",
        body=[{"op": "replace", "path": "/spec/uri", "value": "c.example.org"}],
        content_type="application/json-patch+json",
        **place,
    )
    assert patched.spec.uri == "c.example.org"
    stale = made.to_dict()
    raises(ConflictError, registries.replace, body=stale, **place)
    applied = registries.server_side_apply(
        body={
            "apiVersion": GROUP,
            "kind": "Registry",
            "metadata": {"name": "one"},
            "spec": {"insecure": True},
        },
        field_manager="python",
        force_conflicts=True,
        **place,
    )
    assert applied.spec.insecure is True and applied.spec.uri == "c.example.org"
    raises(
        ConflictError,
        registries.server_side_apply,
        body={"apiVersion": GROUP, "kind": "Registry", "metadata": {"name": "one"}, "spec": {"insecure": False}},
        field_manager="snake",
        **place,
    )
    status = {"status": {"conditions": [{"type": "Discovered", "status": "True", "reason": "Done",
                                         "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    done = registries.status.patch(
        name="one", body=status, content_type="application/merge-patch+json", **place
    )
    assert done.status.conditions[0].type == "Discovered"

    # Pages.
    for index in range(6):
        registries.create(body=registry(f"page-{index}"), **place)
    names, token, pages = [], None, 0
    while True:
        page = registries.get(limit=3, _continue=token, **place)
        names += [item.metadata.name for item in page.items]
        token, pages = page.metadata["continue"], pages + 1
        if not token:
            break
    assert names == ["one"] + [f"page-{index}" for index in range(6)] and pages == 3, (names, pages)
    selected = registries.get(label_selector="team in (one, page-1)", **place)
    assert [item.metadata.name for item in selected.items] == ["one", "page-1"]

    # Deletion.
    registries.delete(name="one", **place)
    raises(NotFoundError, registries.get, name="one", **place)
    registries.delete(label_selector="team!=page-5", **place)
    assert [item.metadata.name for item in registries.get(**place).items] == ["page-5"]


def typed():
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="typed")))
    made = core.create_namespaced_config_map("typed", config_map("one", a="1"))
    assert made.metadata.creation_timestamp.tzinfo is not None
    core.create_namespaced_secret("typed", client.V1Secret(
        metadata=client.V1ObjectMeta(name="hidden"), string_data={"key": "value"}))
    assert core.read_namespaced_secret("hidden", "typed").data == {"key": "dmFsdWU="}

    patched = core.patch_namespaced_config_map("one", "typed", {"data": {"b": "2"}})
    assert patched.data == {"a": "1", "b": "2"}
    made.data = {"a": "stale"}
    assert raises(ApiException, core.replace_namespaced_config_map, "one", "typed", made).status == 409
    patched.data = {"a": "3"}
    assert core.replace_namespaced_config_map("one", "typed", patched).data == {"a": "3"}
    assert raises(ApiException, core.read_namespaced_config_map, "none", "typed").status == 404

    labels = {"app": "web"}
    apps.create_namespaced_deployment("typed", client.V1Deployment(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(
            replicas=1,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels),
                spec=client.V1PodSpec(containers=[client.V1Container(name="nginx", image="nginx:1")]),
            ),
        ),
    ))
    # The typed client's patches of a dictionary are strategic.
    web = apps.patch_namespaced_deployment("web", "typed", {"spec": {"template": {"spec": {
        "containers": [{"name": "nginx", "image": "nginx:2"}]}}}})
    assert web.spec.template.spec.containers[0].image == "nginx:2"
    assert [item.metadata.name for item in apps.list_deployment_for_all_namespaces().items] == ["web"]
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(
        resource_attributes=client.V1ResourceAttributes(verb="get", resource="pods", namespace="typed")))
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed
    core.delete_collection_namespaced_config_map("typed")
    assert core.list_namespaced_config_map("typed").items == []
    core.delete_namespace("typed")
    until("the end of the namespace", lambda: "typed" not in [
        item.metadata.name for item in core.list_namespace().items])


def first(stream, count):
    """The next events of a stream as pairs."""
    found = []
    for event in stream:
        found.append((event["type"], event["object"].metadata.name))
        if len(found) == count:
            return found
    raise AssertionError(f"the watch ended after {found}")


def resume():
    core = client.CoreV1Api()
    core.create_namespaced_config_map("default", config_map("one"))
    listed = core.list_namespaced_config_map("default")
    start = listed.metadata.resource_version
    core.create_namespaced_config_map("default", config_map("two"))
    core.patch_namespaced_config_map("one", "default", {"data": {"a": "1"}})
    watcher = watch.Watch()
    arguments = {"namespace": "default", "timeout_seconds": LIMIT}
    seen = first(watcher.stream(core.list_namespaced_config_map, resource_version=start, **arguments), 2)
    assert seen == [("ADDED", "two"), ("MODIFIED", "one")], seen

    # The watch is away while things happen, and resumes behind what it saw last.
    last = watcher.resource_version
    core.delete_namespaced_config_map("two", "default")
    core.create_namespaced_config_map("default", config_map("three"))
    seen = first(watcher.stream(core.list_namespaced_config_map, resource_version=last, **arguments), 2)
    assert seen == [("DELETED", "two"), ("ADDED", "three")], seen

    # The dynamic client begins with what is there; and a watch with a timeout ends in order.
    registries = DynamicClient(client.ApiClient()).resources.get(api_version=GROUP, kind="Registry")
    registries.create(body=registry("watched"), namespace="default")
    for event in registries.watch(namespace="default", timeout=LIMIT):
        assert event["type"] == "ADDED" and event["object"].metadata.name == "watched"
        break
    ended = list(watch.Watch().stream(
        core.list_namespaced_config_map, "default", resource_version=last, timeout_seconds=1))
    assert [event["type"] for event in ended] == ["DELETED", "ADDED"], ended


def gone():
    core = client.CoreV1Api()
    for index in range(5):
        core.create_namespaced_config_map("default", config_map(f"map-{index}"))
    page = core.list_namespaced_config_map("default", limit=2)
    old, token = page.metadata.resource_version, page.metadata._continue
    for index in range(5):
        core.patch_namespaced_config_map(f"map-{index}", "default", {"data": {"a": "1"}})

    def forgotten():
        try:
            core.list_namespaced_config_map(
                "default", resource_version=old, resource_version_match="Exact", limit=1)
        except ApiException as error:
            assert error.status == 410, error
            return True

    until("the old state to be forgotten", forgotten)
    expired = raises(ApiException, core.list_namespaced_config_map, "default", limit=2, _continue=token)
    assert expired.status == 410 and "Expired" in expired.body, expired

    def watch_from(version, count):
        return first(watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=LIMIT), count)

    assert raises(ApiException, watch_from, old, 1).status == 410
    # Even the client's own second attempt, which it makes unless told not to, comes too late.
    again = watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=old)
    assert raises(ApiException, next, again).status == 410

    fresh = core.list_namespaced_config_map("default")
    assert [item.data for item in fresh.items] == [{"a": "1"}] * 5
    core.delete_namespaced_config_map("map-0", "default")
    assert watch_from(fresh.metadata.resource_version, 1) == [("DELETED", "map-0")]

    registries = DynamicClient(client.ApiClient()).resources.get(api_version=GROUP, kind="Registry")
    registries.create(body=registry("one"), namespace="default")
    listed = registries.get(namespace="default")
    registries.delete(name="one", namespace="default")
    for event in registries.watch(namespace="default", timeout=LIMIT,
                                  resource_version=listed.metadata.resourceVersion):
        assert event["type"] == "DELETED", event
        break


if __name__ == "__main__":
    config.load_kube_config()
    {"dynamic": dynamic, "typed": typed, "resume": resume, "gone": gone}[sys.argv[1]]()
