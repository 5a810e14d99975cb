package portal

import (
	"net/http"
)

// helpView is the page of help.
type helpView struct{ Layout }

// help shows the answers to what people ask most.
func (req *request) help() error {
	req.render(http.StatusOK, "help.html", helpView{req.layout("Help", "help")})
	return nil
}
