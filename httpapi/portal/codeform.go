package portal

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hubcloud/domain"
)

// codeForm are the terms of a code as people type them.
type codeForm struct {
	// ID ends the ids of the form's fields.
	ID                       string
	Label, From, Until, Zone string
	// Week are the times of the week, and empty ones for more.
	Week    []weeklyTime
	Problem string
}

// weeklyTime is a time of the week as people type it: it ends at 00:00 where the API's ends at 24:00.
type weeklyTime struct{ domain.WeeklyTime }

// midnight is the end of a day in the API.
const midnight = "24:00"

// weekdays are the days of a schedule by their names in the API.
var weekdays = []struct{ Key, Name string }{
	{"mon", "Mon"}, {"tue", "Tue"}, {"wed", "Wed"}, {"thu", "Thu"}, {"fri", "Fri"}, {"sat", "Sat"},
	{"sun", "Sun"},
}

// newWeeklyTimes is how many empty times a form has for a new schedule: two, since weekends differ.
const newWeeklyTimes = 2

// codeFormOf returns the form of terms, with times in a zone.
func codeFormOf(terms domain.CredentialTerms, zone *time.Location) codeForm {
	form := codeForm{Label: terms.Label, Zone: cmp.Or(terms.TimeZone, zone.String())}
	for typed, at := range map[*string]*time.Time{&form.From: terms.ValidFrom, &form.Until: terms.ValidUntil} {
		if at != nil {
			*typed = at.In(zone).Format(clockLayout)
		}
	}
	for _, w := range terms.Schedule {
		form.Week = append(form.Week, weeklyTime{w})
	}
	form.Week = append(form.Week, make([]weeklyTime, max(1, newWeeklyTimes-len(form.Week)))...)
	return form
}

// typedCode returns the form as it was sent.
func (req *request) typedCode() codeForm {
	form := codeForm{
		Label: req.formValue("label"), From: req.formValue("valid_from"),
		Until: req.formValue("valid_until"), Zone: cmp.Or(req.formValue("time_zone"), req.zone().String()),
	}
	for i := 0; req.http.PostForm.Has("opens-" + formatInt(int64(i))); i++ {
		n := formatInt(int64(i))
		form.Week = append(form.Week, weeklyTime{domain.WeeklyTime{
			Days: req.http.PostForm["days-"+n], From: req.formValue("opens-" + n),
			Until: req.formValue("closes-" + n),
		}})
	}
	return form
}

// terms returns the change of a code that the form asks for. Its times are in a zone, but for those of
// the week.
func (f codeForm) terms(
	zone *time.Location,
) (func(domain.CredentialTerms) domain.CredentialTerms, error) {
	label, err := domain.CleanName("label", f.Label)
	if err != nil {
		return nil, err
	}
	wanted := domain.CredentialTerms{Label: label}
	for _, bound := range []struct {
		name, typed string
		at          **time.Time
	}{{"valid_from", f.From, &wanted.ValidFrom}, {"valid_until", f.Until, &wanted.ValidUntil}} {
		at, ok := parseClock(bound.typed, zone)
		switch {
		case ok:
			*bound.at = new(at.UTC())
		case bound.typed != "":
			return nil, domain.Errorf(domain.CodeInvalidRequest, "%s: must be a time", bound.name)
		}
	}
	for _, w := range f.Week {
		switch {
		case len(w.Days) == 0 && w.From == "" && w.Until == "":
			continue
		case w.Until == "00:00":
			w.Until = midnight
		}
		if len(w.Days) == 0 || w.From == "" || w.Until <= w.From {
			return nil, domain.Errorf(
				domain.CodeInvalidRequest, "schedule: each time needs days, a start, and an end after it",
			)
		}
		wanted.Schedule, wanted.TimeZone = append(wanted.Schedule, w.WeeklyTime), f.Zone
	}
	if wanted.TimeZone != "" {
		_, err = domain.LoadTimeZone("time_zone", f.Zone)
	}
	return func(domain.CredentialTerms) domain.CredentialTerms { return wanted }, err
}

// Weekdays returns the days that can be chosen.
func (codeForm) Weekdays() []struct{ Key, Name string } { return weekdays }

// Weekly reports whether the form has times of the week.
func (f codeForm) Weekly() bool {
	return slices.ContainsFunc(f.Week, func(w weeklyTime) bool { return len(w.Days) > 0 || w.From != "" })
}

// On reports whether the time is on a day.
func (w weeklyTime) On(day string) bool { return slices.Contains(w.Days, day) }

// Ends returns the end as a field has it.
func (w weeklyTime) Ends() string { return strings.Replace(w.Until, midnight, "00:00", 1) }

// Text returns the time for display, such as "Mon–Fri, Sun 08:00–17:00".
func (w weeklyTime) Text() string {
	var runs []string
	for i := 0; i < len(weekdays); i++ {
		first := i
		for i < len(weekdays) && w.On(weekdays[i].Key) {
			i++
		}
		switch i - first {
		case 0:
		case 1:
			runs = append(runs, weekdays[first].Name)
		default:
			runs = append(runs, weekdays[first].Name+"–"+weekdays[i-1].Name)
		}
	}
	return strings.Join(runs, ", ") + " " + w.From + "–" + w.Until
}
