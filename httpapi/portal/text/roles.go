package text

// Roles are the names of members' roles, by the role.
var Roles = map[string]string{"owner": "owner", "admin": "admin", "member": "member"}
