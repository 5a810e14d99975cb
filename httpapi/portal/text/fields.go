package text

// Fields are the labels of form fields that keep what was typed when a session ends, by the names
// of the fields. An empty label is not shown. Other fields, such as tokens, are not kept.
var Fields = map[string]string{
	"name":       "Name",
	"room":       "Room",
	"serial":     "Serial",
	"setup_code": "Setup code",
	"email":      "Email address",
	"role":       "Role",
	"label":      "Label",
	"scope":      "Scopes",
	"value":      "Value",
	"red":        "Red",
	"green":      "Green",
	"blue":       "Blue",
	"target":     "",
	"hub":        "",
	"condition":  "",
	"since":      "",
	"from":       "",
	"site":       "",
	"key":        "",
	"endpoint":   "",
}
