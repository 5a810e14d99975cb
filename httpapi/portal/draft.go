package portal

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// draftLifetime is how long the browser keeps a draft: longer than it takes to sign in.
const draftLifetime = time.Hour

// draft is a form that was not processed because its session had ended. A cookie of the browser
// keeps it, and the first page after signing in shows it. The draft does nothing by itself: the
// person submits the form again.
type draft struct {
	// Action is the path that the form was sent to.
	Action string `json:"action"`
	// Fields are the fields that the person filled in, by their names.
	Fields url.Values `json:"fields"`
}

// keepDraft keeps the form of the request in the browser. The request must come from a page of the
// portal: another site must not choose what a page shows as typed.
func (req *request) keepDraft() {
	kept := draft{Action: req.http.URL.Path, Fields: url.Values{}}
	for name, values := range req.http.PostForm {
		kind, _, _ := strings.Cut(name, "-") // times of the week are numbered
		if _, ok := fieldLabels[kind]; ok {
			kept.Fields[name] = values
		}
	}
	// If it is too long, the notice on the sign-in page says that the form was not saved.
	req.keep(req.cookies.draft(), kept, draftLifetime)
}

// popDraft returns the draft that the page shows, nil if there is none, and removes its cookie. A
// draft of an organization is shown on the pages of that organization only.
func (req *request) popDraft() *draft {
	if req.session.Email == "" {
		return nil
	}
	cookie, err := req.http.Cookie(req.cookies.draft())
	if err != nil {
		return nil
	}
	kept, ok := decodeKept[draft](cookie.Value)
	of, _, _ := strings.Cut(strings.TrimPrefix(kept.Action, "/portal/"), "/")
	if ok && of != req.org && of != "organizations" {
		return nil
	}
	if req.pop(req.cookies.draft()); !ok {
		return nil
	}
	return &kept
}

// draftField is a field of a draft, for people.
type draftField struct{ Label, Value string }

// Shown returns the fields that are not empty, in the order of their labels.
func (d *draft) Shown() []draftField {
	var shown []draftField
	for name, values := range d.Fields {
		label, ok := fieldLabels[name]
		if value := strings.Join(values, ", "); ok && label != "" && value != "" {
			shown = append(shown, draftField{label, value})
		}
	}
	slices.SortFunc(shown, func(a, b draftField) int { return strings.Compare(a.Label, b.Label) })
	return shown
}

// formPage returns the address of the page that the request's form is on, relative to /portal/. The
// address of a form redirects to its page (redirectToForm).
func (req *request) formPage() string {
	page := strings.TrimPrefix(req.http.URL.Path, "/portal/")
	switch page {
	case "sign-out":
		return ""
	case "organizations":
		return "organizations/new"
	}
	if req.formValue("from") == "device" {
		page = strings.TrimSuffix(page, "/commands")
	}
	if query := req.http.URL.Query(); len(query) > 0 {
		page += "?" + query.Encode()
	}
	return page
}

// askToSignIn redirects to the sign-in page, which returns to this page afterwards. A form is kept.
func (req *request) askToSignIn() {
	page, notice := strings.TrimPrefix(req.http.URL.Path, "/portal/"), ""
	if query := req.http.URL.Query(); len(query) > 0 {
		page += "?" + query.Encode()
	}
	if _, err := req.http.Cookie(req.cookies.session()); err == nil {
		notice = "session-ended"
	}
	if req.http.Method == http.MethodPost {
		if page = req.formPage(); page != "" {
			notice = "form-not-sent"
			req.keepDraft()
		}
	}
	if page = portalPath("/portal/" + page); page != "" {
		page = "?next=" + url.QueryEscape(page)
	}
	if req.unconfirmed && req.http.Method == http.MethodGet && req.Provider != nil &&
		req.Provider.Answers() {
		req.redirect("oidc"+page, "") // most people are signed in there, and come back at once
		return
	}
	req.redirect("sign-in"+page, notice)
}

// fieldLabels are the labels of form fields that keep what was typed when a session ends, by the
// names of the fields. An empty label is not shown. Other fields, such as tokens, are not kept.
var fieldLabels = map[string]string{
	"name":        "Name",
	"room":        "Room",
	"serial":      "Serial",
	"setup_code":  "Setup code",
	"email":       "Email address",
	"role":        "Role",
	"label":       "Label",
	"scope":       "Scopes",
	"value":       "Value",
	"red":         "Red",
	"green":       "Green",
	"blue":        "Blue",
	"valid_from":  "From",
	"valid_until": "Until",
	"time_zone":   "",
	"opens":       "",
	"closes":      "",
	"url":         "Address",
	"types":       "Types",
	"to":          "To",
	"expires":     "Expires",
	"zone":        "",
	"topic":       "",
	"kind":        "",
	"days":        "",
	"device":      "",
	"credential":  "",
	"action":      "",
	"other":       "",
	"warm_white":  "",
	"door":        "",
	"target":      "",
	"hub":         "",
	"condition":   "",
	"since":       "",
	"from":        "",
	"site":        "",
	"key":         "",
	"endpoint":    "",
}
