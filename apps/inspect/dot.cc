// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "inspect/drawing.h"
#include "inspect/op_table.h"
#include "inspect/printable.h"
#include "inspect/repeats.h"
#include "inspect/report.h"
#include "inspect/sketch.h"

namespace ptero::inspect {
namespace {

// Graphviz lays out some hundred boxes well and in seconds.
constexpr size_t kMaxDrawnBoxes = 600;
// Looking for repetitions takes longer than linear time.
constexpr size_t kMaxBoxes = 10'000;

constexpr std::string_view kFont = "Helvetica,Arial,sans-serif";
constexpr std::string_view kText = "#212529";
constexpr std::string_view kQuiet = "#6c757d";

// For HTML-like labels; UTF-8 of our own making passes.
std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string small(std::string_view text) {
  return fmt::format("<FONT POINT-SIZE=\"9\" COLOR=\"{}\">{}</FONT>", kQuiet, html(text));
}

// One method's boxes after the repetitions are folded.
class Painter {
 public:
  Painter(const Sketch& sketch, size_t number) : sketch_(sketch), number_(number) {
    repeats_ = find_repeats(sketch.boxes);
    drawn_as_.resize(sketch.boxes.size());
    for (size_t i = 0; i < drawn_as_.size(); ++i) {
      drawn_as_[i] = i;
    }
    for (const Repeat& repeat : repeats_) {
      for (size_t i = 0; i < repeat.size * repeat.count; ++i) {
        drawn_as_[repeat.start + i] = repeat.start + i % repeat.size;
      }
    }
  }

  size_t drawn() const {
    const auto is_drawn = [&, i = size_t{0}](size_t as) mutable { return as == i++; };
    return static_cast<size_t>(std::ranges::count_if(drawn_as_, is_drawn));
  }

  std::set<Family> families() const {
    std::set<Family> families;
    for (const Box& box : sketch_.boxes) {
      if (box.kind == Box::Kind::graph_call) {
        families.insert(box.family);
      }
    }
    return families;
  }

  std::string paint() {
    std::string out;
    const bool frames = has_several_delegates();
    std::optional<size_t> frame;
    for (size_t i = 0; i < sketch_.boxes.size();) {
      const std::optional<size_t> delegate = frames ? sketch_.boxes[i].delegate : std::nullopt;
      if (delegate != frame) {
        out += frame ? "  }\n" : "";
        out += delegate ? frame_start(*delegate, i) : "";
        frame = delegate;
      }
      const auto repeat = std::ranges::find(repeats_, i, &Repeat::start);
      if (repeat == repeats_.end()) {
        out += box(i++);
        continue;
      }
      out += layer(*repeat);
      i += repeat->size * repeat->count;
    }
    out += frame ? "  }\n" : "";
    for (size_t i = 0; i < sketch_.boxes.size(); ++i) {
      // Of repetitions the first tells what comes in, and all are wired alike inside.
      if (drawn_as_[i] == i) {
        for (const Arrow& arrow : sketch_.boxes[i].arrows) {
          const auto port = ports_.find({i, arrow.from});
          out += arrow_text(port == ports_.end() ? id(drawn_as_[arrow.from]) : port->second, id(i),
                            arrow);
        }
      }
    }
    return out;
  }

 private:
  std::string id(size_t box) const { return fmt::format("n{}_{}", number_, box); }

  // Delegates are framed when there are several, unless layers span them.
  bool has_several_delegates() const {
    std::set<size_t> delegates;
    for (const Box& box : sketch_.boxes) {
      if (box.delegate) {
        delegates.insert(*box.delegate);
      }
    }
    const auto in_one = [&](const Repeat& repeat) {
      const auto first = sketch_.boxes.begin() + static_cast<ptrdiff_t>(repeat.start);
      const auto length = static_cast<ptrdiff_t>(repeat.size * repeat.count);
      return std::all_of(first, first + length,
                         [&](const Box& box) { return box.delegate == first->delegate; });
    };
    return delegates.size() > 1 && std::ranges::all_of(repeats_, in_one);
  }

  std::string frame_start(size_t delegate, size_t box) const {
    return fmt::format(
        "  subgraph cluster_d{}_{} {{\n  label=<{}>; labeljust=r; style=rounded; "
        "color=\"#adb5bd\"; margin=12;\n",
        number_, box, small(fmt::format("delegate {}", delegate)));
  }

  // The boxes of one repetition in a frame. What each takes over from the one before enters through
  // a port, to which a dashed arrow leads back.
  std::string layer(const Repeat& repeat) {
    std::string out = fmt::format(
        "  subgraph cluster_{0}_{1} {{\n    label=<<FONT POINT-SIZE=\"15\"><B>\u00d7 {2} layers"
        "</B></FONT>>;\n    labeljust=r; style=\"rounded,filled\"; "
        "fillcolor=\"#f8f9fa\"; color=\"#adb5bd\"; penwidth=1.2; margin=14;\n",
        number_, repeat.start, repeat.count);
    std::string outside;
    std::map<std::pair<size_t, size_t>, std::string> made;  // by outer and inner source
    for (size_t i = repeat.start; i < repeat.start + repeat.size; ++i) {
      const std::vector<Arrow>& arrows = sketch_.boxes[i].arrows;
      for (size_t k = 0; k < arrows.size(); ++k) {
        const size_t inner = sketch_.boxes[i + repeat.size].arrows[k].from;
        if (arrows[k].from >= repeat.start || inner < repeat.start) {
          continue;
        }
        const auto [port, added] = made.try_emplace(
            {arrows[k].from, inner}, fmt::format("p{}_{}_{}", number_, repeat.start, made.size()));
        ports_[{i, arrows[k].from}] = port->second;
        if (added) {
          out += fmt::format(
              "    {} [shape=circle, width=0.12, height=0.12, fixedsize=true, label=\"\", "
              "style=filled, fillcolor=\"#868e96\", color=\"#868e96\"];\n",
              port->second);
          outside += arrow_text(id(drawn_as_[arrows[k].from]), port->second, arrows[k]);
          outside += fmt::format(
              "  {} -> {} [style=dashed, constraint=false, color=\"#adb5bd\", label=<{}>];\n",
              id(drawn_as_[inner]), port->second, small(" next layer "));
        }
      }
    }
    for (size_t i = repeat.start; i < repeat.start + repeat.size; ++i) {
      out += "  " + box(i);
    }
    return out + "  }\n" + outside;
  }

  std::string box(size_t index) const {
    const Box& box = sketch_.boxes[index];
    FamilyInfo colours = family_info(box.family);
    std::string_view text = kText;
    std::string_view quiet = kQuiet;
    std::string_view style = "rounded,filled";
    if (box.kind == Box::Kind::input || box.kind == Box::Kind::output) {
      colours = {"", "#343a40", "#343a40"};
      text = "#ffffff";
      quiet = "#dee2e6";
    } else if (box.kind == Box::Kind::host_call || box.kind == Box::Kind::foreign_delegate) {
      colours = {"", "#ffffff", "#495057"};
      style = "filled,dashed";
    }
    const auto row = [](std::string_view cell) {
      return fmt::format("<TR><TD>{}</TD></TR>", cell);
    };
    std::string rows =
        row(fmt::format("<FONT COLOR=\"{}\"><B>{}</B></FONT>", text, html(printable(box.title))));
    if (!box.detail.empty()) {
      rows += row(
          fmt::format("<FONT POINT-SIZE=\"9\" COLOR=\"{}\">{}</FONT>", quiet, html(box.detail)));
    }
    return fmt::format(
        "  {} [shape=box, style=\"{}\", fillcolor=\"{}\", color=\"{}\", label=<<TABLE "
        "BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"1\">{}</TABLE>>];\n",
        id(index), style, colours.fill, colours.border, rows);
  }

  std::string arrow_text(const std::string& from, const std::string& to, const Arrow& arrow) {
    std::string attributes;
    if (arrow.integer) {
      // Where a position goes, not how it is added up on the way.
      if (!integers_.insert({from, to}).second) {
        return "";
      }
      attributes = "style=dotted, color=\"#adb5bd\"";
    }
    // A tensor with several users is labelled once.
    const bool first = labels_.insert({from, arrow.label}).second;
    if (first && !arrow.label.empty()) {
      attributes += fmt::format("{}label=<{}>", attributes.empty() ? "" : ", ",
                                small(" " + arrow.label + " "));
    }
    return fmt::format("  {} -> {} [{}];\n", from, to, attributes);
  }

  const Sketch& sketch_;
  size_t number_;
  std::vector<Repeat> repeats_;
  std::vector<size_t> drawn_as_;
  std::map<std::pair<size_t, size_t>, std::string> ports_;  // by user and source of an arrow
  std::set<std::pair<std::string, std::string>> labels_;
  std::set<std::pair<std::string, std::string>> integers_;
};

std::string legend(const std::set<Family>& families, bool host) {
  std::string cells;
  const auto add = [&cells](const FamilyInfo& info) {
    cells += fmt::format(
        "<TD BORDER=\"1\" COLOR=\"{}\" BGCOLOR=\"{}\"><FONT POINT-SIZE=\"9\"> {} </FONT></TD>",
        info.border, info.fill, info.name);
  };
  for (const Family family : families) {
    add(family_info(family));
  }
  if (host) {
    add({"outside of delegates", "#ffffff", "#495057"});
  }
  constexpr std::string_view kTable =
      "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"4\" "
      "CELLPADDING=\"3\"><TR>{}</TR></TABLE>";
  return cells.empty() ? "" : fmt::format(kTable, cells);
}

std::string heading(const std::string& title, size_t calls, const std::string& key) {
  const std::string note = small(fmt::format(
      "{} calls; views, sizes and prepacks are folded into the arrows, constants into the boxes",
      calls));
  const std::string last =
      key.empty() ? "" : fmt::format("<TR><TD CELLPADDING=\"8\">{}</TD></TR>", key);
  return fmt::format(
      "<TABLE BORDER=\"0\" CELLSPACING=\"0\"><TR><TD><FONT POINT-SIZE=\"18\"><B>{}</B></FONT></TD>"
      "</TR><TR><TD>{}</TD></TR>{}</TABLE>",
      html(printable(title)), note, last);
}

}  // namespace

Result<std::string> to_dot(const LoadedProgram& loaded, const std::string& title) {
  std::vector<Sketch> sketches;
  for (size_t i = 0; i < loaded.program.plans.size(); ++i) {
    const auto& chains = loaded.program.plans[i].chains;
    if (std::ranges::any_of(chains, [](const auto& c) { return !c.instructions.empty(); })) {
      sketches.push_back(make_sketch(loaded, i));
      PTERO_REJECT_IF(sketches.back().boxes.size() > kMaxBoxes, unsupported,
                      "Method {} has too many calls ({}) for a drawing (limit {}); --ops lists "
                      "them.",
                      printable(sketches.back().method), sketches.back().boxes.size(), kMaxBoxes);
    }
  }
  PTERO_REJECT_IF(sketches.empty(), unsupported,
                  "The program has no method that computes, so there is nothing to draw.");

  std::string body;
  size_t drawn = 0;
  size_t calls = 0;
  std::set<Family> families;
  bool host = false;
  for (size_t i = 0; i < sketches.size(); ++i) {
    Painter painter(sketches[i], i);
    drawn += painter.drawn();
    calls += sketches[i].calls;
    families.merge(painter.families());
    host = host || std::ranges::any_of(sketches[i].boxes, [](const Box& box) {
             return box.kind == Box::Kind::host_call || box.kind == Box::Kind::foreign_delegate;
           });
    const std::string boxes = painter.paint();
    body += sketches.size() == 1
                ? boxes
                : fmt::format(
                      "  subgraph cluster_m{} {{\n  label=<<B>{}</B>>; color=\"#dee2e6\";\n"
                      "{}  }}\n",
                      i, html(printable(sketches[i].method)), boxes);
  }
  PTERO_REJECT_IF(drawn > kMaxDrawnBoxes, unsupported,
                  "The drawing would have too many boxes ({}, limit {}); --ops lists the calls.",
                  drawn, kMaxDrawnBoxes);

  return fmt::format(
      "digraph program {{\n"
      "  graph [rankdir=TB, bgcolor=\"#ffffff\", fontname=\"{0}\", fontcolor=\"{1}\", "
      "labelloc=t, nodesep=0.3, ranksep=0.34, pad=0.3,\n"
      "    label=<{2}>];\n"
      "  node [fontname=\"{0}\", fontsize=11, fontcolor=\"{1}\", penwidth=1.1, height=0.3, "
      "margin=\"0.14,0.06\"];\n"
      "  edge [fontname=\"{0}\", fontsize=9, color=\"#868e96\", arrowsize=0.6, penwidth=1.1];\n"
      "{3}}}\n",
      kFont, kText, heading(title, calls, legend(families, host)), body);
}

}  // namespace ptero::inspect
