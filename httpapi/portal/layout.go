package portal

import (
	"fmt"
	"html/template"
	"net/http"
	"time"

	"hubcloud/domain"
)

// Layout is what every page shows around its own part. Views embed it.
type Layout struct {
	// Heading is the page's, in its tab and on top; Section is which line of the navigation it
	// belongs to.
	Heading, Section string
	// Root is the way from the page to /portal/.
	Root string
	// Email is who is signed in, and FormToken what each of the session's forms carries; both empty
	// for others.
	Email, FormToken string
	// Member is what the visitor is in the page's organization, if it is of one; Several says that
	// there are others to go to.
	Member  domain.MemberAccess
	Several bool
	// Notice says what the last action did; empty mostly.
	Notice    string
	Now       time.Time
	RequestID string
	// Scripts are the assets that the page loads as modules.
	Scripts []string
}

// shell makes the frame of a page. It takes the notice that waits, so it is called once.
func (req *request) layout(heading, section string) Layout {
	return Layout{
		Heading: heading, Section: section, Root: req.root(),
		Email: req.session.Email, FormToken: req.session.FormToken,
		Member: req.member,
		Several: req.session.Email != "" &&
			len(req.portal.People.Memberships(req.session.Email)) > 1,
		Notice: req.popNotice(), Now: req.info.At, RequestID: req.info.RequestID,
	}
}

// notices are what pages say about the action before them, by the names that travel in a cookie:
// nobody can have a page of ours say something else.
var notices = map[string]string{
	"signed-out":           "You are signed out.",
	"organization-created": "The organization is ready. Next, add a site, and the hubs that stand there.",
	"role-changed":         "The role is changed.",
	"member-removed":       "The member is removed, and can see nothing of the organization any more.",
	"left":                 "You have left the organization.",
	"invited":              "The invitation is on its way. Its link works for whoever opens it.",
	"invitation-revoked":   "The invitation is withdrawn: its link has stopped working.",
	"key-shown": "That key is made already. Its secret was shown once: if nobody has " +
		"copied it, revoke the key and create another.",
	"key-revoked":      "The key is revoked. It has stopped working, and what was open with it has ended.",
	"site-created":     "The site is there.",
	"site-renamed":     "The site has its new name.",
	"hub-added":        "The hub is added.",
	"command-sent":     "The hub has the command. The channel shows what becomes of it.",
	"device-labeled":   "The device has its name and room.",
	"device-forgotten": "The hub has forgotten the device.",
	"window-closed":    "The window is closed.",
	"hub-placed":       "The hub has its name and site.",
	"link-reset": "The link is reset. The hub asks for a new certificate within six " +
		"hours, or at once when it is restarted.",
}

func (req *request) setNotice(name string) {
	http.SetCookie(req.w, req.portal.cookies.make(req.portal.cookies.notice(), name, time.Minute))
}

func (req *request) popNotice() string {
	cookie, err := req.http.Cookie(req.portal.cookies.notice())
	if err != nil {
		return ""
	}
	http.SetCookie(req.w, req.portal.cookies.end(req.portal.cookies.notice()))
	return notices[cookie.Value]
}

// when writes a time as people say it, with the exact one at hand.
func when(at, now time.Time) template.HTML {
	at = at.UTC()
	// Nothing of it comes from elsewhere.
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		at.Format(time.RFC3339), at.Format("2 January 2006, 15:04:05 UTC"), relative(at, now)))
}

// relative says how long ago, or how far ahead, a time is; after a month it gives the day.
func relative(at, now time.Time) string {
	distance, ahead := now.Sub(at), false
	if distance < 0 {
		distance, ahead = -distance, true
	}
	var text string
	switch {
	case distance < 45*time.Second && !ahead:
		return "just now"
	case distance < 90*time.Minute:
		text = count(max(1, int(distance.Round(time.Minute)/time.Minute)), "minute")
	case distance < 36*time.Hour:
		text = count(int(distance.Round(time.Hour)/time.Hour), "hour")
	case distance < 31*24*time.Hour:
		text = count(int((distance+12*time.Hour)/(24*time.Hour)), "day")
	default:
		return at.Format("2 January 2006")
	}
	if ahead {
		return "in " + text
	}
	return text + " ago"
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
