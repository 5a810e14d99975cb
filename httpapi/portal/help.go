package portal

import (
	"net/http"

	"hubcloud/httpapi/portal/text"
)

// helpView is the page of help.
type helpView struct{ Layout }

// help shows the answers to what people ask most.
func (req *request) help() error {
	req.render(http.StatusOK, "help.html", helpView{req.layout(text.Pages["help"], "help")})
	return nil
}
