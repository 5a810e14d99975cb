package portal

import (
	"errors"
	"net/http"
	"slices"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// The values of the form's field mails.
const (
	mailAlarms   = "alarms"
	mailAll      = "all"
	mailNothing  = "none"
	allMailSites = "all"
)

// mailSeverities are the severities of each value of the form's field mails.
var mailSeverities = map[string][]domain.Severity{
	mailAlarms:  {domain.SeverityAlarm},
	mailAll:     {domain.SeverityAlarm, domain.SeverityWarning},
	mailNothing: {},
}

// notificationsView is the page on which members choose which conditions they are mailed about.
type notificationsView struct {
	Layout
	// Mails is the chosen value of the field mails.
	Mails string
	// All reports that the conditions of all sites are mailed.
	All   bool
	Sites []siteChoice
	// MoreSites reports that the page does not show all sites.
	MoreSites bool
	// PerHour is how many mails a member gets in an hour at most.
	PerHour string
	// Problem is why the form was rejected.
	Problem string
}

// siteChoice is a site that may be chosen in a form.
type siteChoice struct {
	domain.Site
	Chosen bool
}

// siteChoices returns the first sites of the organization, at most that many, and others that are
// chosen. more reports that there are others.
func (req *request) siteChoices(
	most int, chosen []string,
) (choices []siteChoice, more bool, err error) {
	sites, err := req.ReadModels.Sites(req.ctx, domain.Reach{OrgID: req.org}, most, "")
	if err != nil {
		return nil, false, err
	}
	for _, site := range sites.Data {
		choices = append(choices, siteChoice{site, slices.Contains(chosen, site.ID)})
	}
	for _, id := range chosen {
		if slices.ContainsFunc(choices, func(c siteChoice) bool { return c.ID == id }) {
			continue
		}
		if site, err := req.ReadModels.Site(req.ctx, req.org, id); err == nil {
			choices = append(choices, siteChoice{site, true})
		}
	}
	return choices, sites.HasMore, nil
}

// notifications shows what is mailed to the member.
func (req *request) notifications() error {
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return err
	}
	member, ok := org.Member(req.member.MemberID)
	if !ok {
		return domain.ErrOrgNotFound()
	}
	return req.showNotifications(http.StatusOK, member.MailPreferences(), "")
}

func (req *request) showNotifications(
	status int, chosen domain.MailPreferences, problem string,
) error {
	sites, more, err := req.siteChoices(domain.MaxMailSites, chosen.Sites)
	if err != nil {
		return err
	}
	view := notificationsView{
		Layout: req.layout("Notifications", "settings"),
		Mails:  mailNothing, All: chosen.Sites == nil, Sites: sites, MoreSites: more,
		PerHour: counted(req.AlarmMailsPerHour, "mail"), Problem: problem,
	}
	for value, severities := range mailSeverities {
		if slices.Equal(severities, chosen.Severities) {
			view.Mails = value
		}
	}
	req.render(status, "notifications.html", view)
	return nil
}

// chooseNotifications changes what is mailed to the member.
func (req *request) chooseNotifications() error {
	severities, ok := mailSeverities[req.formValue("mails")]
	if !ok {
		return domain.Errorf(domain.CodeInvalidRequest, "mails: must be alarms, all or none")
	}
	chosen := domain.MailPreferences{Severities: severities}
	if req.formValue("sites") != allMailSites {
		chosen.Sites = append([]string{}, req.http.PostForm["site"]...)
		if len(chosen.Sites) == 0 && len(severities) == 0 {
			chosen.Sites = nil // no mails about no sites
		}
	}
	err := req.Directory.SetMailPreferences(
		req.ctx, req.origin(), req.org, req.member.MemberID, chosen,
	)
	return req.finishForm(
		err, "notifications", "mails-chosen", func(status int, problem string) error {
			return req.showNotifications(status, chosen, problem)
		},
	)
}

// ConditionTitle returns what is wrong, in a few words, for the subject of a mail.
func ConditionTitle(c attention.Condition) string {
	title, _ := conditionTexts(c)
	return title
}

// unsubscribeView is the page of the link in a mail about alarms.
type unsubscribeView struct {
	Layout
	// Outcome is ask, done or unknown.
	Outcome string
	OrgName string
	// Choose is the page on which mails are chosen, below /portal/.
	Choose string
}

// unsubscribePage asks whether to end the mails of the link. A GET alone must not end them: mail
// scanners send one.
func (req *request) unsubscribePage() error { return req.unsubscribe(false) }

// stopMails ends the mails of the link: by the button of the page, or by the one click of a mail
// program (RFC 8058), which has no session and is no page of the portal. Whoever has the link may
// end the mails, so that no form needs to be checked.
func (p *Portal) stopMails(w http.ResponseWriter, r *http.Request, info RequestInfo) {
	req := p.newRequest(w, r, info)
	if err := req.unsubscribe(true); err != nil {
		req.writeError(err)
	}
}

func (req *request) unsubscribe(stop bool) error {
	req.w.Header().Set("Referrer-Policy", "no-referrer") // the address holds a secret
	key, err := req.Unsubscribe.UnsubscribeKey(req.ctx)
	if err != nil {
		return err
	}
	token, err := domain.OpenUnsubscribeToken(key, req.http.PathValue("token"))
	var org domain.OrgState
	if err == nil {
		org, err = req.Directory.Org(req.ctx, token.OrgID)
	}
	if _, ok := org.Member(token.MemberID); err == nil && !ok {
		err = domain.ErrMemberNotFound()
	}
	if err == nil && stop {
		err = req.Directory.StopMails(
			req.ctx, req.originOf(domain.Actor{}), token.OrgID, token.MemberID,
		)
	}
	view, status := unsubscribeView{OrgName: org.Name, Outcome: "ask"}, http.StatusOK
	heading := "Stop alarm mails?"
	switch {
	case errors.Is(err, &domain.Error{Code: domain.CodeNotFound}):
		view, status = unsubscribeView{Outcome: "unknown"}, http.StatusNotFound
		heading = "This link does not work"
	case err != nil:
		return err
	case stop:
		view.Outcome, heading = "done", "Alarm mails stopped"
	}
	if view.Outcome != "unknown" {
		view.Choose = token.OrgID + "/notifications"
	}
	view.Layout = req.layout(heading, "")
	req.render(status, "unsubscribe.html", view)
	return nil
}
