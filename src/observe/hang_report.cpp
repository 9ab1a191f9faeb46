// SPDX-License-Identifier: Apache-2.0
#include "observe/hang_report.hpp"

#include <vector>

#include "observe/hang_json.hpp"
#include "observe/hang_text.hpp"
#include "observe/node_names.hpp"
#include "observe/wait_graph.hpp"

namespace sojourn::detail {

hang_report explain(const hang_view& view, const std::string& speaker) {
  const wait_graph waits(view);
  const std::vector<node_name> names = names_of(view, waits);
  hang_report report;
  report.sentence = hang_sentence(view, waits, names);
  report.text =
      speaker + view.why + "\n" + ranks_text(view, waits, names) + speaker + report.sentence + "\n";
  report.json = hang_json(view, waits, names, report.sentence);
  report.no_main_goes_on = waits.no_main_goes_on();
  return report;
}

}  // namespace sojourn::detail
