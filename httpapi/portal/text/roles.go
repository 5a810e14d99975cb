package text

// Roles are the names of members' roles, by the role. A viewer is a member who may only look.
var Roles = map[string]string{"owner": "owner", "admin": "admin", "member": "member", "viewer": "viewer"}
