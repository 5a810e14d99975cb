package portal

import (
	"errors"
	"net/http"
	"slices"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// testMailsPerHour is how many test mails a member gets in an hour from each replica.
const testMailsPerHour = 5

// notificationsView is the page on which members choose which conditions they are mailed about.
type notificationsView struct {
	Layout
	// Alarms and Warnings are the topics.
	Alarms, Warnings []topicChoice
	Sites            []siteChoice
	// MoreSites reports that the page does not show all sites.
	MoreSites bool
	// Quiet are the quiet hours, and Zones the time zones that they may be in.
	Quiet domain.QuietHours
	Zones []string
	// PerHour is how many mails a member gets in an hour at most, and Email the member's address.
	PerHour string
	// Problem is why the form was rejected, and Field the field that was.
	Problem, Field string
}

// Chosen returns the topics that are mailed.
func (v notificationsView) Chosen() (chosen []topicChoice) {
	for _, topic := range slices.Concat(v.Alarms, v.Warnings) {
		if topic.Chosen {
			chosen = append(chosen, topic)
		}
	}
	return chosen
}

// Only returns the sites that are chosen; none for all sites.
func (v notificationsView) Only() (chosen []siteChoice) {
	for _, site := range v.Sites {
		if site.Chosen {
			chosen = append(chosen, site)
		}
	}
	return chosen
}

// topicChoice is a topic of mails. Which is why there may be more in it than its name says.
type topicChoice struct {
	Topic       domain.MailTopic
	Name, Which string
	Chosen      bool
}

// topicTexts are the names of topics, and what else they are about.
var topicTexts = map[domain.MailTopic][2]string{
	domain.MailSmoke:     {"Smoke", "and heat"},
	domain.MailGas:       {"Gas", "and carbon monoxide"},
	domain.MailEmergency: {"Emergencies", "somebody needs help"},
	domain.MailWater:     {"Water leaks"},
	domain.MailSecurity:  {"Security", "tampering, intrusion and alarms of other kinds"},
	domain.MailLocks:     {"Locks", "jammed, or a door that is not locked"},
	domain.MailHubs:      {"Hubs offline", "after five minutes"},
	domain.MailBatteries: {"Low batteries"},
	domain.MailFaults:    {"Faults", "devices out of reach, hubs that do not report, service needed"},
	domain.MailCommands:  {"Commands", "not carried out, or a lock operated by hand afterwards"},
}

// topicChoices returns topics for the form.
func topicChoices(topics, chosen []domain.MailTopic) (choices []topicChoice) {
	for _, topic := range topics {
		texts := topicTexts[topic]
		choices = append(choices, topicChoice{topic, texts[0], texts[1], slices.Contains(chosen, topic)})
	}
	return choices
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
	_, chosen, err := req.mailPreferences()
	if err != nil {
		return err
	}
	return req.showNotifications(http.StatusOK, chosen, "", "")
}

// mailPreferences returns the organization, and what is mailed to the member.
func (req *request) mailPreferences() (org domain.OrgState, p domain.MailPreferences, err error) {
	if org, err = req.Directory.Org(req.ctx, req.org); err != nil {
		return org, p, err
	}
	member, ok := org.Member(req.member.MemberID)
	if !ok {
		return org, p, domain.ErrOrgNotFound()
	}
	return org, member.MailPreferences(), nil
}

func (req *request) showNotifications(
	status int, chosen domain.MailPreferences, field, problem string,
) error {
	sites, more, err := req.siteChoices(domain.MaxMailSites, chosen.Sites)
	if err != nil {
		return err
	}
	view := notificationsView{
		Layout: req.layout("Notifications", "settings"),
		Alarms: topicChoices(domain.AlarmTopics, chosen.Topics), Sites: sites, MoreSites: more,
		Warnings: topicChoices(domain.WarningTopics, chosen.Topics),
		Zones:    []string{req.zone().String()}, PerHour: counted(req.AlarmMailsPerHour, "mail"),
		Field: field, Problem: problem,
	}
	if chosen.Quiet != nil {
		view.Quiet = *chosen.Quiet
		view.Zones = slices.Compact([]string{view.Quiet.Zone, req.zone().String()})
	}
	req.render(status, "notifications.html", view)
	return nil
}

// chooseNotifications changes what is mailed to the member. Sites that are ticked are the only ones;
// without any, mails are about all sites. Without times there are no quiet hours.
func (req *request) chooseNotifications() error {
	chosen := domain.MailPreferences{Sites: req.http.PostForm["site"]}
	for _, topic := range req.http.PostForm["topic"] {
		chosen.Topics = append(chosen.Topics, domain.MailTopic(topic))
	}
	quiet := domain.QuietHours{
		From: req.formValue("from"), To: req.formValue("to"), Zone: req.formValue("zone"),
	}
	if quiet.From+quiet.To != "" {
		chosen.Quiet = &quiet
	}
	err := req.Directory.SetMailPreferences(
		req.ctx, req.origin(), req.org, req.member.MemberID, chosen,
	)
	return req.finishForm(
		err, "notifications", "mails-chosen", func(status int, problem string) error {
			return req.showNotifications(status, chosen, rejectedField(err), problem)
		},
	)
}

// sendTestMail mails the member a test.
func (req *request) sendTestMail() error {
	org, chosen, err := req.mailPreferences()
	if err != nil {
		return err
	}
	if chosen.None() {
		return req.showNotifications(
			http.StatusBadRequest, chosen, "topics", "Choose what is mailed to you, and save it first.",
		)
	}
	of := req.org + "/" + req.member.MemberID
	if allowed := req.testMails.Take(of, req.info.At); !allowed.Granted {
		err = domain.RateLimited(
			allowed.Next, "you have asked for %d test mails within an hour; no more are sent",
			testMailsPerHour,
		)
	} else {
		err = req.Mails.SendTest(req.ctx, org, req.member.MemberID)
	}
	return req.finish(err, "notifications", "test-mail-sent")
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
