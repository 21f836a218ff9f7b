Feature: Reconcile Kubernetes resources for configuration auditing

  The same scenarios for what is outside of namespaces.

  Scenario: Scan a K8s resource when there are applicable Rego policies

    Given a set of Rego policies applicable to ClusterRoles
    When a ClusterRole is discovered by the operator
    And there is no ClusterConfigAuditReport associated with the ClusterRole
    Then the operator scans the ClusterRole
    And eventually, there is the ClusterConfigAuditReport associated with the ClusterRole

  Scenario: Skip scanning a K8s resource when there are no applicable Rego policies

    Given a set of Rego policies not applicable to ClusterRoles
    When a ClusterRole is discovered by the operator
    And there is no ClusterConfigAuditReport associated with the ClusterRole
    Then operator requeues (with delay) the reconciliation key for the ClusterRole

  Scenario: Delete (stale) ClusterConfigAuditReport when applicable Rego policies are removed

    Given a set of Rego policies applicable to ClusterRoles
    And the ClusterConfigAuditReport associated with a ClusterRole
    When Rego policies for ClusterRoles are removed
    Then operator deletes the ClusterConfigAuditReport
    And the operator requeues (without delay) the reconciliation key for the ClusterRole

  Scenario: Rescan a K8s resource when applicable Rego policies are updated

    Given a set of Rego policies applicable to K8s workloads and ClusterRoles
    When Rego code applicable to ClusterRoles has changed
    Then operator deletes ClusterConfigAuditReports associated with ClusterRoles
    But ClusterConfigAuditReports associated with K8s resources other than ClusterRoles are left intact

  Scenario: Rescan all K8s resources when Rego helper functions have changed

    Given a set of Rego policies applicable to K8s workloads, ClusterRoles, and Services
    When Rego code of helper functions have changed
    Then the operator deletes all ClusterConfigAuditReports
