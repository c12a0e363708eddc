#include "completion.hpp"

#include <algorithm>

namespace einmal::programs {

namespace {

const OptionWords* option_named(const CommandWords& command, const std::string& name) {
  for (const auto& option : command.options) {
    if (std::find(option.names.begin(), option.names.end(), name) != option.names.end())
      return &option;
  }
  return nullptr;
}

const CommandWords* command_named(const CommandWords& command, const std::string& name) {
  for (const auto& each : command.commands) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

/// Where the word under the cursor stands.
struct Place {
  const CommandWords* command;
  const OptionWords* valued = nullptr;  ///< The option whose value it is.
  std::size_t positionals = 0;          ///< How many stood before it.
};

Place place_of_last(const CommandWords& program, const std::vector<std::string>& words) {
  Place place{&program};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (place.valued) {
      place.valued = nullptr;
    } else if (words[i].starts_with('-')) {
      const auto* option = option_named(*place.command, words[i]);
      if (option && !option->value.empty()) place.valued = option;
    } else if (const auto* below = command_named(*place.command, words[i])) {
      place.command = below;
    } else {
      ++place.positionals;
    }
  }
  return place;
}

void add_values(Completion& completion, const OptionWords& option, const std::string& begun) {
  for (const auto& choice : option.choices) completion.words.push_back({choice, {}});
  if (option.value == "FILE") completion.files = true;
  if (option.value == "STORE") {
    if (begun.starts_with("sqlite:")) {
      completion.files = true;
    } else {
      completion.words.push_back({"sqlite:", "a file"});
      completion.words.push_back({"postgresql://", "a server"});
    }
  }
}

}  // namespace

Completion complete(const CommandWords& program, const std::vector<std::string>& words) {
  Completion completion;
  const auto& begun = words.empty() ? std::string() : words.back();
  const auto place = place_of_last(program, words);
  if (place.valued) {
    add_values(completion, *place.valued, begun);
  } else {
    if (!begun.starts_with('-')) {
      for (const auto& command : place.command->commands)
        completion.words.push_back({command.name, command.help});
      if (place.positionals < place.command->positionals.size())
        add_values(completion, place.command->positionals[place.positionals], begun);
    }
    if (begun.starts_with('-') || completion.words.empty()) {
      for (const auto& option : place.command->options)
        completion.words.push_back({option.names.back(), option.help});
    }
  }
  std::erase_if(completion.words,
                [&](const Candidate& each) { return !each.word.starts_with(begun); });
  return completion;
}

std::string as_lines(const Completion& completion) {
  std::string lines;
  for (const auto& [word, help] : completion.words) lines += word + "\t" + help + "\n";
  return completion.files ? lines + ":files\n" : lines;
}

std::string completion_script(const std::string& shell) {
  // The words are those before the cursor, split at blanks: COMP_WORDS splits at colons as well.
  if (shell == "bash") {
    return R"script(# bash completion for einmal: asks the program itself.
_einmal() {
  local line typed=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]}
  local -a words
  read -ra words <<< "$typed"
  [[ $typed == *[[:space:]] ]] && words+=("")
  local begun=${words[${#words[@]}-1]}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2> /dev/null
      mapfile -O "${#COMPREPLY[@]}" -t COMPREPLY < <(compgen -f -- "${current#:}")
    else
      line=${line%%$'\t'*}
      COMPREPLY+=("${line:$((${#begun} - ${#current}))}")
      [[ $line == *[:/] ]] && compopt -o nospace 2> /dev/null
    fi
  done < <("${COMP_WORDS[0]}" __complete "${words[@]:1}" 2> /dev/null)
}
complete -F _einmal einmal
)script";
  }
  if (shell == "zsh") {
    return R"script(#compdef einmal
# zsh completion for einmal: asks the program itself.
_einmal() {
  local line word
  local -a described
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    if [[ $line == :files ]]; then
      compset -P 'sqlite:'
      _files
    elif [[ -n $line ]]; then
      word=${line%%$'\t'*}
      described+=("${word//:/\\:}:${line#*$'\t'}")
    fi
  done
  (( ${#described} )) && _describe -t einmal 'einmal' described
}
if [[ $funcstack[1] == _einmal ]]; then
  _einmal "$@"
else
  compdef _einmal einmal
fi
)script";
  }
  return {};
}

}  // namespace einmal::programs
