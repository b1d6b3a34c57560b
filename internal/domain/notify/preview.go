// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"

	"tamga/internal/domain/fault"
)

// Preview is a message as the service would send it, with sample values.
type Preview struct {
	Channel       Channel
	Lang          string
	Subject, Text string
	File          string // name of the file of its text
	Replaced      bool   // by a file of the installation
}

// Previewed returns what Preview shows: the templates of single messages, and the events that
// users are told of.
func Previewed() (templates []string, events []EventInfo) {
	templates = slices.DeleteFunc(slices.Clone(templateNames), func(name string) bool { return name == TemplateEvent || name == TemplateFactor })
	return templates, slices.DeleteFunc(Events(), func(e EventInfo) bool { return !e.ToldUsers() })
}

// Preview returns the messages about a template or an event of Previewed, in each language and
// for each channel that the installation sends them by. Nothing is sent. A fault is
// object_not_found.
func (s *Service) Preview(about string) ([]Preview, error) {
	templates, events := Previewed()
	pushed := slices.Contains([]string{TemplateDeviceWake, TemplateBrowserWake, TemplateBrowserTrial}, about) // no other channel has them
	devices := pushed
	template, data := about, func(lang string) map[string]string { return sample[about][lang] }
	if i := slices.IndexFunc(events, func(e EventInfo) bool { return string(e.Type) == about }); i >= 0 {
		e := Event{Type: events[i].Type}
		devices = !events[i].toContacts()
		switch {
		case e.Type == UserFactorChanged:
			e.Factor = FactorDevice
		case events[i].Category == "Certificates":
			e.Detail = "certificate 1"
		}
		template, _ = s.notice(e, events[i], s.settings.Language)
		data = func(lang string) map[string]string { _, data := s.notice(e, events[i], lang); return data }
	} else if !slices.Contains(templates, about) {
		return nil, fault.New(fault.NotFound, "there is no such message")
	}
	var list []Preview
	for _, lang := range []string{"ru", "en"} {
		for _, channel := range s.Available() {
			switch to := channel.Info().To; {
			case to == ToDevices && !devices,
				to != ToDevices && pushed,
				to != ToAddresses && template == TemplateDeviceQR: // its picture goes with mail
				continue
			}
			c, err := s.deps.Templates.render(template, lang, channel, nil, data(lang))
			if err != nil {
				return nil, err
			}
			list = append(list, Preview{
				Channel: channel, Lang: lang, Subject: c.Subject, Text: c.Text, File: template + "." + lang + ".txt", Replaced: s.deps.Templates.own[template+"."+lang],
			})
		}
	}
	return list, nil
}
