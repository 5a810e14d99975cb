package text

// Scripts are the texts of the pages' scripts, by name.
var Scripts = map[string]string{
	"signed-out":     "Your session has ended.",
	"signed-in-anew": "You signed in again after this page was loaded.",
}
