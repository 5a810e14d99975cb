package portal

import (
	"errors"
	"time"

	"hubcloud/domain"
)

// undoable is a change that the next page offers to undo. A cookie carries it there. It names the
// request alone: the directory knows what the request changed, and that it was the member's.
type undoable struct {
	Request string `json:"request"`
	Org     string `json:"org"`
	// Page is the page that the change was made on, relative to the organization's.
	Page string `json:"page"`
	// Sites and Hubs were changed; without any, the organization was.
	Sites []string       `json:"sites,omitempty"`
	Hubs  []domain.HubID `json:"hubs,omitempty"`
}

// offerUndo makes the next page offer to undo what this request has changed, unless it failed. A
// change of so many hubs that a cookie cannot name them cannot be undone.
func (req *request) offerUndo(err error, page string, sites []string, hubs ...domain.HubID) {
	if err == nil && !req.fromScript() {
		change := undoable{req.info.RequestID, req.org, page, sites, hubs}
		req.keep(req.cookies.undo(), change, time.Minute)
	}
}

// popUndo returns the change that the page offers to undo, as a value of its form; "" for none. It
// removes the cookie.
func (req *request) popUndo() string {
	value := req.pop(req.cookies.undo())
	if change, ok := decodeKept[undoable](value); !ok || change.Org != req.org {
		return ""
	}
	return value
}

// undo undoes a change of the member. What somebody has changed again meanwhile stays.
func (req *request) undo() error {
	change, ok := decodeKept[undoable](req.formValue("change"))
	if !ok || change.Org != req.org {
		return errForgedForm
	}
	if len(change.Sites)+len(change.Hubs) > 0 && !req.member.Manages() {
		return errManagersOnly
	}
	undone, err := req.Directory.Undo(
		req.ctx, req.origin(), req.org, change.Request, change.Sites, change.Hubs,
	)
	notice := "undone"
	switch {
	case errors.Is(err, domain.ErrCannotUndo()):
		err, notice = nil, "undo-over"
	case undone.Newer > 0 && undone.Restored == 0:
		notice = "undo-newer"
	case undone.Newer > 0:
		notice = "undone-partly"
	}
	if err != nil {
		return err
	}
	page := portalPath("/portal/" + req.org + "/" + change.Page)
	if page == "" {
		page = "/portal/" + req.org
	}
	req.redirect(page[len("/portal/"):], notice)
	return nil
}
